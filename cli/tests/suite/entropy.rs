//! `tokenwise entropy`.

use std::fs;

use crate::command::Folder;

fn history(entropies: impl Iterator<Item = f64>) -> String {
    let records: Vec<String> = entropies
        .enumerate()
        .map(|(index, entropy)| format!("{{\"step\": {}, \"entropy\": {entropy}}}", index + 1))
        .collect();
    format!("[{}]", records.join(", "))
}

fn two_runs(folder: &Folder) {
    folder.file("a/entropy_history_questioner.json", history((0..60).map(|step| 4.5 - f64::from(step) * 0.02)));
    folder.file("b/c/entropy_history_solver.json", history((0..60).map(|step| 4.0 / (1.0 + f64::from(step)))));
}

fn is_png(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() > 5000
}

#[test]
fn one_history_becomes_a_picture_of_either_kind() {
    let folder = Folder::new("plot");
    two_runs(&folder);
    let done = folder.run(&["entropy", "plot", "a/entropy_history_questioner.json", "-o", "x.png"]).done();
    assert!(is_png(&fs::read(folder.0.join("x.png")).unwrap()));
    assert!(done.out.contains("questioner") && done.out.contains("3.91"), "{}", done.out);
    let arguments = [
        "entropy",
        "plot",
        "a/entropy_history_questioner.json",
        "-o",
        "x.SVG",
        "--label",
        "a < b & \"c\"",
        "--title",
        "T",
    ];
    folder.run(&arguments).done();
    let svg = fs::read_to_string(folder.0.join("x.SVG")).unwrap();
    assert!(svg.contains("<svg") && svg.contains("a &lt; b &amp; ") && svg.contains("policy entropy (nats)"));
    assert!(svg.to_uppercase().contains("#0072B2"));
    assert_eq!(folder.names(), ["a", "b", "x.SVG", "x.png"]);
}

#[test]
fn a_comparison_has_labels_statistics_and_collapse() {
    let folder = Folder::new("compare");
    two_runs(&folder);
    let files = ["entropy", "compare", "a/entropy_history_questioner.json", "b/c/entropy_history_solver.json"];
    let options = [
        "--labels",
        "Questioner",
        "Solver",
        "--with_stats",
        "--collapse",
        "0.5",
        "--smooth",
        "5",
        "-o",
        "x.svg",
        "--json",
    ];
    let done = folder.run(&[&files[..], &options[..]].concat()).done();
    let runs = &done.json()[0]["runs"];
    assert_eq!((&runs[0]["label"], &runs[0]["collapse_step"]), (&"Questioner".into(), &serde_json::Value::Null));
    // 4 / 2 is not below half of 4
    assert_eq!((&runs[1]["collapse_step"], &runs[1]["max"], &runs[1]["first"]), (&3.into(), &4.0.into(), &4.0.into()));
    let svg = fs::read_to_string(folder.0.join("x.svg")).unwrap();
    for word in ["Questioner", "Solver (below 50 % from step 3)", "mean", "max", "min", "over all steps"] {
        assert!(svg.contains(word), "{word}");
    }
    folder
        .run(&[&files[..], &["--labels", "one", "-o", "y.png"]].concat())
        .refused(2, &["1 label for 2 files", "one label for each"]);
    folder
        .run(&[&files[..], &["--labels", "1", "2", "3", "-o", "y.png"]].concat())
        .refused(2, &["3 labels for 2 files"]);
    assert_eq!(folder.names(), ["a", "b", "x.svg"]);
}

#[test]
fn the_kernel_agrees_with_known_values() {
    let done = Folder::new("check").run(&["entropy", "check"]).done();
    assert!(done.out.matches(" ok").count() == 5 && done.out.contains("11.9312"), "{}", done.out);
}

#[test]
fn signs_that_no_font_has_are_told() {
    let folder = Folder::new("font");
    two_runs(&folder);
    // the last code point stands for nothing
    let picture = ["-o", "x.png", "--label", "\u{10fffd}"];
    let done = folder.run(&[&["entropy", "plot", "a/entropy_history_questioner.json"], &picture[..]].concat()).done();
    assert!(done.err.starts_with("warning: no font on this machine has the signs"), "{}", done.err);
    assert!(is_png(&fs::read(folder.0.join("x.png")).unwrap()));
}

#[test]
fn a_scan_finds_every_history_below_a_folder() {
    let folder = Folder::new("scan");
    two_runs(&folder);
    folder.file("d/entropy_history_solver.json", history([1.0].into_iter()));
    folder.file("d/.entropy_history_solver.json.hidden", "not json");
    folder.file("d/other.json", "not json");
    let done = folder.run(&["entropy", "scan", ".", "-o", "x.svg", "--json"]).done();
    let lines = done.json();
    let labels: Vec<&str> =
        lines[0]["runs"].as_array().unwrap().iter().filter_map(|run| run["label"].as_str()).collect();
    assert_eq!(labels, ["questioner", "solver (b/c)", "solver (d)"]);
    let many = Folder::new("scan-order");
    for run in [10, 9, 1] {
        many.file(&format!("entropy_history_run{run}.json"), history([1.0].into_iter()));
    }
    let done = many.run(&["entropy", "scan", ".", "-o", "x.svg"]).done();
    let place = |run: &str| done.out.find(run).unwrap();
    assert!(place("run1 ") < place("run9 ") && place("run9 ") < place("run10 "), "{}", done.out);
    let empty = Folder::new("scan-empty");
    empty
        .run(&["entropy", "scan", ".", "-o", "x.svg"])
        .refused(3, &["no entropy_history_*.json or metrics_*.jsonl below this folder"]);
    assert!(empty.names().is_empty());
}

#[test]
fn bad_histories_are_named_and_leave_no_picture() {
    let folder = Folder::new("bad-history");
    let cases: [(&str, &[u8], &[&str]); 9] = [
        ("empty.json", b"", &["empty.json", "the file is empty"]),
        ("none.json", b"[]", &["none.json", "the history is empty"]),
        ("cut.json", b"[{\"step\": 1, \"entropy\": 2},\n {\"step\"", &["cut.json, line 2, record 2", "ends too early"]),
        (
            "nan.json",
            b"[{\"step\": 1, \"entropy\": NaN}]",
            &["nan.json, line 1, record 1", "entropy is NaN; expected a finite number"],
        ),
        (
            "twice.json",
            b"[{\"step\": 1, \"entropy\": 1}, {\"step\": 1, \"entropy\": 1}]",
            &["record 2", "step 1 occurs twice"],
        ),
        (
            "back.json",
            b"[{\"step\": 2, \"entropy\": 1}, {\"step\": 1, \"entropy\": 1}]",
            &["record 2", "steps must increase"],
        ),
        ("binary.json", b"\x00\xff\xfe\x01", &["binary.json: this is a binary file, not an entropy history"]),
        ("object.json", b"{\"step\": 1}", &["object.json", "none of policy/entropy", "--key"]),
        (
            "text.json",
            b"[{\"step\": 1, \"entropy\": \"x\"}]",
            &["record 1", "entropy is \"x\"; expected a finite number"],
        ),
    ];
    for (name, bytes, words) in cases {
        folder.file(name, bytes);
        folder.run(&["entropy", "plot", name, "-o", "out.png"]).refused(3, words);
    }
    folder.run(&["entropy", "plot", "missing.json", "-o", "out.png"]).refused(3, &["missing.json", "No such file"]);
    folder.file("good.json", history([1.0, 2.0].into_iter()));
    folder.run(&["entropy", "compare", "good.json", "nan.json", "-o", "out.png"]).refused(3, &["nan.json"]);
    folder.run(&["entropy", "plot", "good.json", "-o", "out.jpg"]).refused(2, &["out.jpg", ".png, .svg or .pdf"]);
    folder.run(&["entropy", "plot", "good.json", "-o", "no/such/folder/out.png"]).refused(4, &["cannot be written"]);
    folder.run(&["entropy", "plot", "good.json", "--collapse", "1.5"]).refused(2, &["--collapse", "between 0 and 1"]);
    assert!(!folder.names().iter().any(|name| name.contains("out") || name.contains("png")), "{:?}", folder.names());
    folder.file(
        "metrics_x.jsonl",
        "{\"step\": 1, \"policy/entropy\": 2.5}\n{\"step\": 2, \"other\": 1}\n{\"step\": 3, \"policy/entropy\": 1.5}\n",
    );
    let done = folder.run(&["entropy", "plot", "metrics_x.jsonl", "-o", "ok.svg", "--json"]).done();
    assert_eq!((&done.json()[0]["runs"][0]["steps"], &done.json()[0]["runs"][0]["mean"]), (&2.into(), &2.0.into()));
}
