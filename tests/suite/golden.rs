//! The golden cases of this repository pass, and the runner fails where it should.

use std::{fs, path::Path};

use tokenwise_tests::golden::run;

fn golden() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"))
}

#[test]
fn every_case_passes() {
    let report = run(golden()).unwrap();
    assert_eq!(report.failed(), 0, "{report}");
    assert!(report.passed() > 1000, "only {} cases were found", report.passed());
    let page = include_str!("../golden/COVERAGE.md");
    let hint =
        "run `cargo run -p tokenwise-tests --bin golden -- tests/golden --coverage` and put the table into COVERAGE.md";
    assert!(page.ends_with(&report.coverage()), "{hint}");
}

/// What the runner says of one case that differs in `change` from a right one.
fn verdict(name: &str, change: &str) -> String {
    let case = r#"{"op": "masked_mean", "rows": 1, "cols": 2, "mask": [1, 1], "inputs": {"x": [1, 3]}, "expect": {"value": 2}}"#;
    let (from, to) = change.split_once(" => ").unwrap();
    assert!(case.contains(from));
    let file = std::env::temp_dir().join(format!("tokenwise-golden-{}-{name}.json", std::process::id()));
    fs::write(&file, format!(r#"{{"format": "tokenwise-golden/1", "cases": [{}]}}"#, case.replace(from, to))).unwrap();
    let report = run(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(report.passed() + report.failed(), 1);
    report.to_string()
}

#[test]
fn what_is_not_known_or_not_right_fails_and_is_named() {
    for (name, change, said) in [
        ("right", r#""value": 2 => "value": 2"#, "1 passed, 0 failed"),
        ("value", r#""value": 2 => "value": 2.1"#, "value: got 2.0, expected 2.1, distance 1.0"),
        ("operation", "masked_mean => masked_mode", "op: unknown operation \"masked_mode\""),
        ("key", r#""rows" => "rouws": 1, "rows""#, "unknown key \"rouws\""),
        ("input", r#""x": => "y": [0], "x":"#, "inputs: unknown key \"y\""),
        ("output", r#""value" => "mean""#, "unknown output \"mean\""),
        ("length", "[1, 3] => [1, 3, 5]", "x: expected 2 entries, got 3"),
        ("mask", r#""mask": [1, 1] => "mask": [1, 2]"#, "mask: expected 0 or 1, got 2"),
        (
            "profile",
            r#""rows" => "profile": "verl-0.1", "rows""#,
            "profile: expected paper, verl-0.9.1, trl-1.16, openrlhf-0.11, got \"verl-0.1\"",
        ),
        ("error", r#""expect": {"value": 2} => "expect_error": "why""#, "expected an error, got a result"),
    ] {
        let report = verdict(name, change);
        assert!(report.contains(said), "{name}: {report}");
    }
}

#[test]
fn an_empty_folder_is_an_error() {
    let folder = std::env::temp_dir().join(format!("tokenwise-golden-{}-empty", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    assert!(run(&folder).is_err());
    fs::remove_dir(&folder).unwrap();
    assert!(run(&folder).is_err());
}
