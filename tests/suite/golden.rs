//! The golden cases of this repository pass, and the runner fails where it should.

use std::{fs, path::Path};

use tokenwise_catalogue::entries;
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

/// The runner's result for a case that differs from a valid one by `change`.
fn verdict(name: &str, change: &str) -> String {
    let case = r#"{"op": "masked_mean", "rows": 1, "cols": 2, "mask": [1, 1], "inputs": {"x": [1, 3]},
        "expect": {"value": 2}}"#;
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

/// Names of other frameworks.
#[test]
fn a_value_may_be_written_in_more_than_one_way() {
    let cases = r#"{"format": "tokenwise-golden/1", "source": {"any": "thing"}, "cases": [
        {"op": "masked_mean", "rows": 1, "cols": 3, "mask": [true, false, true], "inputs": {"x": [1, "NaN", 3]},
         "expect": {"value": 2}},
        {"op": "masked_mean", "rows": 1, "cols": 2, "inputs": {"x": [1, 3]}, "params": null,
         "expect": {"value": 2}, "rtol": null},
        {"op": "masked_mean", "rows": 1, "cols": 2, "inputs": {"x": [1]}, "expect_error": "a slice too short"},
        {"op": "aggregate", "rows": 1, "cols": 2, "inputs": {"losses": [1, 3]},
         "params": {"mode": "seq-mean-token-sum-norm", "scale_factor": null}, "expect": {"value": 2}},
        {"op": "aggregate", "rows": 1, "cols": 2, "inputs": {"losses": [1, 3]}, "params": {"mode": "median"},
         "expect_error": "no mode"},
        {"op": "rloo", "rows": 2, "cols": 1, "groups": [12345678901, 12345678901], "inputs": {"rewards": [1, 3]},
         "params": {"norm_by_std": 1}, "expect": {"advantages": [-2, 2]}},
        {"op": "BY_SCORE", "rows": 1, "cols": 2,
         "inputs": {"log_probs": [-1, -1], "old_log_probs": [-1, 0], "advantages": [1, -1]},
         "params": {"aggregate": "token-sum", "clip_low": 0.2}, "expect": {"grad": [-1, 0.36787944117144233]}},
        {"op": "ppo_clip", "profile": "verl-0.9.1", "rows": 1, "cols": 1,
         "inputs": {"log_probs": [0], "old_log_probs": [0], "advantages": [1]},
         "expect": {"actor/pg_loss": -1, "actor/pg_clipfrac": 0, "ppo_kl": 0}},
        {"op": "rollout_rejection", "rows": 1, "cols": 2,
         "inputs": {"old_log_probs": [-1, -2], "rollout_log_probs": [-1, -1]},
         "params": {"options": "token_k2", "thresholds": 0.1}, "expect": {"mask": [true, false]}},
        {"op": "adaptive_kl", "inputs": {"current_kl": [9, 0]},
         "params": {"init_kl_coef": 0.5, "target_kl": 0.25, "horizon": 100, "n_steps": 100},
         "expect": {"values": [0.6, 0.48]}}
    ]}"#;
    let by_score = entries().find(|entry| {
        let reads = |name| entry.inputs.iter().any(|column| column.name == name);
        entry.stage == "loss" && reads("scores") && reads("advantages")
    });
    let file = std::env::temp_dir().join(format!("tokenwise-golden-{}-spellings.json", std::process::id()));
    fs::write(&file, cases.replace("BY_SCORE", by_score.unwrap().name)).unwrap();
    let report = run(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!((report.passed(), report.failed()), (10, 0), "{report}");
}

/// Formulas without an operation of their own run by their name, with the names of their columns and settings.
#[test]
fn any_formula_of_the_catalogue_can_have_cases() {
    let cases = r#"{"format": "tokenwise-golden/1", "cases": [
        {"op": "missing_eos_penalty", "rows": 2, "inputs": {"scores": [1, 2], "ended": [1, 0]},
         "params": {"penalty": 0.5},
         "expect": {"out": [1, 1.5]}},
        {"op": "gae_decoupled", "rows": 1, "cols": 2, "inputs": {"rewards": [0, 1], "values": [0.5, 0.5]},
         "params": {"lambda_policy": 0.5, "lambda_value": 1}, "expect": {"advantages": [0.25, 0.5], "returns": [1, 1]}},
        {"op": "moments", "rows": 1, "cols": 2, "inputs": {"values": [1, 3]},
         "expect": {"count": 2, "mean": 2, "m2": 2}},
        {"op": "missing_eos_penalty", "rows": 1, "inputs": {"scores": [1], "ended": [1]}, "params": {"price": 1},
         "expect": {"out": [1]}},
        {"op": "missing_eos_penalty", "rows": 1, "inputs": {"scores": [1], "ends": [1]}, "expect": {"out": [1]}},
        {"op": "moments", "rows": 1, "inputs": {"values": [1]}, "params": {"spread": 1}, "expect": {"count": 1}}
    ]}"#;
    let file = std::env::temp_dir().join(format!("tokenwise-golden-{}-catalogue.json", std::process::id()));
    fs::write(&file, cases).unwrap();
    let report = run(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!((report.passed(), report.failed()), (3, 3), "{report}");
    for said in ["params: unknown key \"price\"", "inputs: missing \"ended\"", "params: unknown key \"spread\""] {
        assert!(report.to_string().contains(said), "{said}: {report}");
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
