//! `tokenwise explain` and `tokenwise completions`.

use unicode_width::UnicodeWidthStr;

use crate::command::Folder;

#[test]
fn the_example_is_explained_in_both_languages() {
    let folder = Folder::new("explain");
    let done = folder.run(&["explain", "--cell", "advantage:3"]).done();
    for line in [
        "A_t = δ_t + γ · λ · A_{t+1}",
        "A_3 = 0.055 + 1 · 0.95 · 0.569987 = 0.596488",
        "Action-aligned: belongs to token 3 itself.",
    ] {
        assert!(done.out.contains(&line.replace('−', "-")), "{line}: {}", done.out);
    }
    let done = folder.run(&["explain", "--cell", "return:1", "--lang", "zh"]).done();
    for line in ["R_1 = 0.621081 + 0.2 = 0.821081", "对齐到状态", "白化之前"] {
        assert!(done.out.contains(&line.replace('−', "-")), "{line}: {}", done.out);
    }
    let rows = folder.run(&["explain", "--json"]).done().json()[0]["rows"].clone();
    let near = |row: &str, wanted: [f64; 6]| {
        let got = rows[row].as_array().unwrap();
        assert!(
            got.iter().zip(wanted).all(|(got, wanted)| approx::abs_diff_eq!(
                got.as_f64().unwrap(),
                wanted,
                epsilon = 1e-6
            )),
            "{row}: {got:?}"
        );
    };
    near("reward", [-0.01, -0.005, 0.005, -0.01, -0.02, 0.995]);
    near("advantage", [0.621081, 0.611664, 0.596488, 0.569987, 0.505250, 0.395]);
    near("return", [0.821081, 0.861664, 0.896488, 0.919987, 0.955250, 0.995]);
}

#[test]
fn columns_line_up_with_wide_signs() {
    let folder = Folder::new("explain-width");
    for language in ["en", "zh"] {
        let out = folder.run(&["explain", "--lang", language]).done().out;
        let widths: Vec<usize> = out.lines().skip(2).take(11).map(UnicodeWidthStr::width).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{language}: {widths:?}\n{out}");
    }
}

#[test]
fn every_cell_of_every_row_has_an_explanation() {
    let folder = Folder::new("explain-all");
    for row in ["score", "kl", "reward", "value", "delta", "advantage", "return", "whitened"] {
        for language in ["en", "zh"] {
            for token in ["1", "6"] {
                folder.run(&["explain", "--cell", &format!("{row}:{token}"), "--lang", language]).done();
            }
        }
    }
    for (cell, word) in
        [("colour:1", "there is no row \"colour\""), ("advantage:7", "from 1 to 6"), ("advantage", "e.g. advantage:3")]
    {
        folder.run(&["explain", "--cell", cell]).refused(2, &[word]);
    }
}

#[test]
fn another_example_is_read_from_a_file() {
    let folder = Folder::new("explain-file");
    let text = r#"{"tokens": ["a", "<tool>", "b"], "mask": [1, 0, 1],
        "scores": [0, 5, 1], "values": [0.5, 9, 0.5], "lambda": 0.5}"#;
    folder.file("x.json", text);
    let done = folder.run(&["explain", "x.json", "--cell", "advantage:1"]).done();
    assert!(done.out.contains("A_1 = 0 + 1 · 0.5 · 0.5 = 0.25") && done.out.contains("skipped"), "{}", done.out);
    assert!(folder.run(&["explain", "x.json", "--cell", "reward:2"]).done().out.contains("Token 2 is dropped"));
    folder.file("y.json", r#"{"scores": [0], "values": [0.5, 9]}"#);
    folder
        .run(&["explain", "y.json"])
        .refused(3, &["y.json", "field \"scores\" has 1 entries, field \"values\" has 2"]);
    folder.run(&["explain", "z.json"]).refused(3, &["z.json"]);
}

#[test]
fn shells_get_their_completions() {
    let folder = Folder::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let done = folder.run(&["completions", shell]).done();
        assert!(done.out.contains("tokenwise") && done.out.contains("verl-0.9.1"), "{shell}");
    }
    assert!(folder.run(&["--help"]).done().out.contains("Exit codes"));
    folder.run(&["completions", "none"]).refused(2, &["none"]);
    assert_eq!(folder.run(&["metrics", "x", "--profile", "verl"]).code, 2);
}
