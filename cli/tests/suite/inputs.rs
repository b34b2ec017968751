//! Where input comes from and output goes to: pipes, standard input, archives, folders, patterns, the input itself.
#![cfg(unix)]

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use crate::command::{fixture, Folder};

/// Runs the command with bytes on its standard input.
fn piped(folder: &Folder, arguments: &[&str], bytes: &[u8]) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tokenwise"))
        .args(arguments)
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    // a command that refuses its input closes the pipe
    let writer = std::thread::spawn(move || drop(input.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn pipes_lose_no_byte() {
    let folder = Folder::new("pipes");
    for name in ["rollouts.jsonl", "rollouts.parquet", "rollouts.safetensors", "unipo.json", "zstd.parquet"] {
        let wanted = folder.run(&["metrics", &fixture(name), "--json"]);
        for path in ["-", "/dev/stdin"] {
            let bytes = fs::read(fixture(name)).unwrap();
            let (code, out, err) = piped(&folder, &["metrics", path, "--json"], &bytes);
            assert_eq!((code, &out), (wanted.code, &wanted.out), "{name} {path}: {err}");
        }
    }
    // more than any buffer
    let line = "{\"score\": 1, \"old_log_probs\": [-1, -2, -3]}\n";
    let (code, out, err) = piped(&folder, &["metrics", "-", "--json"], line.repeat(50_000).as_bytes());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"sequences\":50000"), "{out}");
    // `<(…)` of a shell: a pipe with a name
    let line = format!("'{}' metrics <(cat '{}') --json", env!("CARGO_BIN_EXE_tokenwise"), fixture("rollouts.jsonl"));
    let output = Command::new("bash").args(["-c", &line]).output().unwrap();
    let wanted = folder.run(&["metrics", &fixture("rollouts.jsonl"), "--json"]).done().out;
    assert_eq!(String::from_utf8(output.stdout).unwrap(), wanted, "{}", String::from_utf8_lossy(&output.stderr));
    let history = "[{\"step\": 1, \"entropy\": 2}, {\"step\": 2, \"entropy\": 1}]";
    let (code, out, err) = piped(&folder, &["entropy", "plot", "-", "-o", "x.svg", "--json"], history.as_bytes());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"steps\":2"), "{out}");
}

#[test]
fn archives_are_read_by_default() {
    let folder = Folder::new("archives");
    let wanted = folder.run(&["metrics", &fixture("rollouts.jsonl"), "--json"]).done().out;
    fs::copy(fixture("rollouts.jsonl"), folder.0.join("a.jsonl")).unwrap();
    let zipped = Command::new("gzip").args(["-k", "a.jsonl"]).current_dir(&folder.0).status();
    if zipped.is_ok_and(|status| status.success()) {
        assert_eq!(folder.run(&["metrics", "a.jsonl.gz", "--json"]).done().out, wanted);
    }
    folder.run(&["metrics", &fixture("zstd.parquet")]).done();
}

#[test]
fn several_files_are_one() {
    let folder = Folder::new("several");
    let row = |score: f64| format!("{{\"score\": {score}, \"input\": \"p\"}}\n");
    for (step, rank, score) in [(9, 0, 0.0), (9, 1, 1.0), (10, 0, 3.0), (10, 1, 3.0)] {
        folder.file(&format!("exports/step_{step}/rank_{rank}.jsonl"), row(score));
    }
    for argument in ["exports", "exports/step_*/rank_?.jsonl"] {
        let lines = folder.run(&["metrics", argument, "--json"]).done().json();
        let got: Vec<_> = lines
            .iter()
            .filter(|line| line.get("batches").is_none())
            .map(|line| (line["step"].as_u64(), line["metrics"]["critic/score/mean"].as_f64()))
            .collect();
        assert_eq!(got, [(Some(9), Some(0.5)), (Some(10), Some(3.0))], "{argument}");
    }
    let csv = folder.run(&["metrics", "exports", "--csv", "--keys", "critic/score/mean"]).done().out;
    assert_eq!(csv, "step,critic/score/mean\n9,0.5\n10,3\n");
    let table = folder.run(&["metrics", "exports", "--steps", "--keys", "critic/score/mean"]).done().out;
    assert!(table.contains("10                    3\n"), "{table}");
    folder.run(&["metrics", "exports", "--plot", "m.svg"]).done();
    assert!(fs::read_to_string(folder.0.join("m.svg")).unwrap().contains("critic/score/mean"));
    folder.run(&["metrics", "exports/none_*"]).refused(3, &["no file has a name like this"]);
}

#[test]
fn the_input_is_never_replaced_and_names_may_be_long() {
    let folder = Folder::new("same");
    let history = "[{\"step\": 1, \"entropy\": 2}]";
    folder.file("h.svg", history);
    std::os::unix::fs::symlink("h.svg", folder.0.join("link.svg")).unwrap();
    for output in ["h.svg", "./h.svg", "link.svg"] {
        folder.run(&["entropy", "plot", "h.svg", "-o", output]).refused(2, &["would replace the input"]);
    }
    assert_eq!(fs::read_to_string(folder.0.join("h.svg")).unwrap(), history);
    let long = format!("{}.svg", "x".repeat(250));
    folder.run(&["entropy", "plot", "h.svg", "-o", &long]).done();
    assert_eq!(folder.names().len(), 3, "{:?}", folder.names());
}

#[test]
fn a_picture_that_is_too_large_is_refused() {
    let folder = Folder::new("large");
    folder.file("h.json", "[{\"step\": 1, \"entropy\": 2}]");
    let options = ["--scale", "16", "--width", "4000", "-o", "x.png"];
    folder.run(&[&["entropy", "plot", "h.json"], &options[..]].concat()).refused(2, &["pixels", "--memory"]);
    let few = ["metrics", &fixture("rollouts.jsonl"), "--memory", "2TiB"];
    folder.run(&few).done();
    assert_eq!(folder.run(&["metrics", "x", "--memory", "5"]).code, 2);
}

#[test]
fn metrics_of_other_programs_are_drawn_by_key() {
    let folder = Folder::new("keys");
    let verl: String = (1..5)
        .map(|step| format!("{{\"step\": {step}, \"data\": {{\"actor/entropy\": {}, \"x\": 1}}}}\n", 5 - step))
        .collect();
    folder.file("verl.jsonl", &verl);
    let mean = |arguments: &[&str]| {
        let done = folder.run(&[arguments, &["-o", "x.svg", "--json"]].concat()).done();
        (done.json()[0]["runs"][0]["mean"].as_f64().unwrap(), done)
    };
    assert_eq!(mean(&["entropy", "plot", "verl.jsonl"]).0, 2.5);
    assert_eq!(mean(&["entropy", "plot", "verl.jsonl", "--key", "x"]).0, 1.0);
    folder.file(
        "wandb.csv",
        "\"Step\",\"a - actor/entropy\",\"a - actor/entropy__MIN\",\"b - actor/entropy\"\n1,2,2,4\n2,4,4,\n",
    );
    let (first, done) = mean(&["entropy", "plot", "wandb.csv", "--key", "actor/entropy"]);
    assert_eq!((first, &done.json()[0]["runs"][1]["label"]), (3.0, &"b".into()));
    folder
        .run(&["entropy", "plot", "wandb.csv", "-o", "y.svg"])
        .refused(3, &["this is CSV; expected a JSON array of {\"step\", \"entropy\"} (use --key for a metrics file)"]);
    folder.file("again.jsonl", verl.clone() + "{\"step\": 2, \"data\": {\"actor/entropy\": 9}}\n");
    let (_, done) = mean(&["entropy", "plot", "again.jsonl"]);
    assert!(done.err.contains("the steps go back 1 time") && done.err.contains("1 step occurs again"), "{}", done.err);
    folder
        .run(&["entropy", "plot", "verl.jsonl", "--key", "y", "-o", "y.svg"])
        .refused(3, &["no \"y\"", "actor/entropy"]);
}

#[test]
fn a_scan_goes_on_past_bad_files_and_links() {
    let folder = Folder::new("scan-links");
    folder.file("a/entropy_history_x.json", "[{\"step\": 1, \"entropy\": 2}, {\"step\": 2, \"entropy\": 1}]");
    folder.file("a/entropy_history_empty.json", "");
    folder.file("a/entropy_history_bad.json", "[{");
    folder.file("b/metrics_y.jsonl", "{\"step\": 1, \"policy/entropy\": 3}\n");
    std::os::unix::fs::symlink("..", folder.0.join("a/up")).unwrap();
    std::os::unix::fs::symlink("..", folder.0.join("b/up")).unwrap();
    let done = folder.run(&["entropy", "scan", ".", "-o", "x.svg", "--json"]).done();
    let runs = done.json()[0]["runs"].as_array().unwrap().len();
    assert_eq!(runs, 2, "{done:?}");
    assert!(done.err.contains("entropy_history_empty.json") && done.err.contains("entropy_history_bad.json"));
}

#[test]
fn control_characters_reach_neither_terminal_nor_picture() {
    let folder = Folder::new("control");
    folder.file("h.json", "[{\"step\": 1, \"entropy\": 2}]");
    let label = "a\u{1b}[31mb\u{7}";
    let done = folder.run(&["entropy", "plot", "h.json", "--label", label, "-o", "x.svg"]).done();
    let svg = fs::read_to_string(folder.0.join("x.svg")).unwrap();
    assert!(!done.out.contains('\u{1b}') && !svg.contains('\u{1b}') && !svg.contains('\u{7}'));
    folder.file("x.jsonl", "{\"score\": \"\\u001b[2J\"}\n");
    let refused = folder.run(&["metrics", "x.jsonl"]).refused(3, &["line 1"]);
    assert!(!refused.err.contains('\u{1b}'), "{refused:?}");
    folder.file("tokens.json", "{\"tokens\": [\"\\u001b[2J\"], \"scores\": [1], \"values\": [0]}");
    assert!(!folder.run(&["explain", "tokens.json"]).done().out.contains('\u{1b}'));
}

#[test]
fn nothing_to_compute_is_an_error() {
    let folder = Folder::new("nothing");
    folder.file("x.jsonl", "{\"advantage\": 1, \"prompt\": \"a\"}\n");
    folder.run(&["metrics", "x.jsonl"]).refused(3, &["nothing can be computed from", "advantage"]);
    folder.file("y.jsonl", "{\"score\": 1}\n");
    folder.run(&["metrics", "y.jsonl", "--field", "score=typo"]).refused(3, &["\"typo\"", "found"]);
}

#[test]
fn a_row_of_a_rollout_file_is_explained() {
    let folder = Folder::new("row");
    let done = folder.run(&["explain", &fixture("rollouts.jsonl"), "--row", "2", "--cell", "advantage:3"]).done();
    assert!(done.out.contains("A_3 =") && done.out.lines().all(|line| line.chars().count() <= 90), "{}", done.out);
    assert_eq!(done.err, "");
    folder.run(&["explain", &fixture("rollouts.jsonl"), "--row", "9"]).refused(3, &["there is no row 9"]);
    folder
        .run(&["explain", &fixture("rollouts.jsonl"), "--row", "1", "--gamma", "-1"])
        .refused(2, &["--gamma: must be in [0, 1], got -1"]);
    // rewards hold the penalty already; what the row does not have is told
    let numbers = "\"log_probs\": [-1, -2], \"ref_log_probs\": [-2, -4]";
    for (score, rewards, warning) in [
        ("\"rewards\": [0.25, 1]", [0.25, 1.0], "no kl and no value: 0 is assumed"),
        ("\"score\": 1", [-0.1, 0.8], "no value: 0 is assumed"),
    ] {
        folder.file("x.jsonl", format!("{{{score}, {numbers}}}\n"));
        let done = folder.run(&["explain", "x.jsonl", "--row", "1", "--json"]).done();
        assert_eq!(done.json()[0]["rows"]["reward"], serde_json::json!(rewards), "{done:?}");
        assert!(done.err.contains(warning), "{done:?}");
    }
}

#[test]
fn a_growing_file_is_followed() {
    let folder = Folder::new("follow");
    let path = folder.file("x.jsonl", "{\"score\": 1, \"step\": 1}\n{\"score\": 0, \"st");
    let mut child = Command::new(env!("CARGO_BIN_EXE_tokenwise"))
        .args(["metrics", "x.jsonl", "--follow", "--keys", "critic/score/mean"])
        .current_dir(&folder.0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"ep\": 1}\n{\"score\": 7, \"step\": 2}\n").unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(line, "step 1  critic/score/mean 0.5\n");
}

#[test]
fn an_interrupt_leaves_nothing_half_done() {
    let folder = Folder::new("interrupt");
    let numbers = "-0.5,".repeat(2000);
    let line = format!("{{\"log_probs\": [{numbers}-1], \"values\": [{numbers}-1]}}\n");
    folder.file("x.jsonl", line.repeat(20));
    for round in 0..4 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tokenwise"))
            .args(["report", "x.jsonl", "-o", "x.html"])
            .current_dir(&folder.0)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let temporary = folder.0.join(format!(".tokenwise-{}", child.id()));
        // once while it reads, otherwise as soon as it writes
        if round == 0 {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        while round > 0 && !temporary.exists() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status();
        let code = child.wait().unwrap().code();
        assert!([Some(130), Some(0)].contains(&code), "{code:?}");
        let names = folder.names();
        assert!(names.iter().all(|name| ["x.jsonl", "x.html"].contains(&name.as_str())), "{names:?}");
        let page = folder.0.join("x.html");
        let whole = fs::read_to_string(&page).map(|text| text.ends_with("</html>\n"));
        assert!(
            whole.as_ref().is_ok_and(|whole| *whole) || (whole.is_err() && code == Some(130)),
            "{code:?} {whole:?}"
        );
        let _ = fs::remove_file(page);
    }
}
