//! `tokenwise lint`: one file per fault.

use crate::command::{fixture, Folder, Output};

fn lint(folder: &Folder, text: &str, more: &[&str]) -> Output {
    folder.file("x.jsonl", text);
    folder.run(&[&["lint", "x.jsonl", "--json"], more].concat())
}

/// The rules that were broken, with their tokens.
fn rules(output: &Output) -> Vec<(String, Option<u64>)> {
    let lines = output.json();
    let findings = lines.iter().filter(|line| line["rule"].is_string());
    findings.map(|line| (line["rule"].as_str().unwrap().to_string(), line["token"].as_u64())).collect()
}

#[test]
fn each_fault_is_found_where_it_is() {
    let folder = Folder::new("lint");
    let cases: [(&str, &[&str], &str, Option<u64>); 9] = [
        (r#"{"mask": [1, 1, 0], "rewards": [0, 0, 1]}"#, &[], "reward-on-dropped-slot", Some(3)),
        (
            r#"{"mask": [1, 1], "log_probs": [-1, -1], "old_log_probs": [-1, -1.5]}"#,
            &["--first-step"],
            "ratio-at-first-update",
            Some(2),
        ),
        (r#"{"mask": [1, 1, 0, 0], "old_log_probs": [-1, -2, -3, 0]}"#, &[], "last-token-hidden", Some(3)),
        (r#"{"mask": [0, 0], "old_log_probs": [0, 0]}"#, &[], "nothing-kept", None),
        (r#"{"values": [0.5, 0.5], "advantages": [0.5, 0.25], "returns": [1, 1]}"#, &[], "returns-disagree", Some(2)),
        (r#"{"old_log_probs": [-1, -1], "values": [1, NaN], "advantages": [NaN, NaN]}"#, &[], "not-a-number", Some(2)),
        (r#"{"old_log_probs": [-Infinity, -1]}"#, &[], "not-a-number", Some(1)),
        (
            "{\"group\": 1, \"score\": 1, \"old_log_probs\": [-1]}\n\
             {\"group\": 1, \"score\": 1, \"old_log_probs\": [-1]}",
            &[],
            "tied-group",
            None,
        ),
        (
            "{\"uid\": \"a\", \"advantages\": 1, \"old_log_probs\": [-1]}\n\
             {\"uid\": \"a\", \"advantages\": -0.5, \"old_log_probs\": [-1]}",
            &[],
            "group-not-centred",
            None,
        ),
    ];
    for (text, more, rule, token) in cases {
        let found = lint(&folder, text, more);
        assert_eq!(found.code, 1, "{found:?}");
        assert_eq!(rules(&found), [(rule.to_string(), token)], "{text}");
        assert_eq!(found.json().last().unwrap()["findings"], 1);
    }
}

#[test]
fn good_files_pass() {
    let folder = Folder::new("lint-good");
    let good = [
        "{\"mask\": [1, 1, 0], \"rewards\": [0, 1, 0], \"old_log_probs\": [-1, -2, 0], \"values\": [0.5, 0.5, 7], \
         \"advantages\": [0.25, 0.5, 9], \"returns\": [0.75, 1, 0]}",
        // dropped slots may hold any value
        r#"{"mask": [1, 0], "rewards": [0, NaN], "old_log_probs": [-1, NaN]}"#,
        // without the option a ratio may differ from 1
        r#"{"log_probs": [-1], "old_log_probs": [-2]}"#,
        // advantages that differ between tokens are not group-relative
        "{\"group\": 1, \"advantages\": [1, 2], \"score\": 1}\n{\"group\": 1, \"advantages\": [1, 1], \"score\": 0}",
    ];
    for text in good {
        let found = lint(&folder, text, &[]);
        assert_eq!((found.code, rules(&found).len()), (0, 0), "{text}: {found:?}");
    }
}

#[test]
fn findings_are_told_in_words_with_place_and_origin() {
    let folder = Folder::new("lint-words");
    folder.file("x.jsonl", "{\"old_log_probs\": [-1]}\n{\"old_log_probs\": [NaN]}\n");
    let found = folder.run(&["lint", "x.jsonl"]);
    assert_eq!(found.code, 1);
    assert!(found.out.contains("x.jsonl:2, token 1: not-a-number: old_log_probs is NaN"), "{}", found.out);
    assert!(found.out.contains("2 sequences, 1 finding: 1 not-a-number"), "{}", found.out);
    let unipo = folder.run(&["lint", &fixture("unipo.json"), "--json"]);
    assert_eq!(
        rules(&unipo),
        [("ratio-at-first-update".to_string(), Some(6)), ("returns-disagree".to_string(), Some(6))]
    );
    let trl =
        folder.run(&["lint", &fixture("completions_00005.parquet"), "--field", "score=accuracy_reward", "--json"]);
    assert_eq!(rules(&trl), [("tied-group".to_string(), None)]);
    let many: String = (0..100).map(|_| "{\"old_log_probs\": [NaN]}\n").collect();
    let found = lint(&folder, &many, &["--limit", "3"]);
    assert_eq!((rules(&found).len(), &found.json().last().unwrap()["findings"]), (3, &100.into()));
}

#[test]
fn the_faults_of_files_of_others_are_those_of_the_table() {
    let folder = Folder::new("lint-table");
    let table: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&std::fs::read_to_string(fixture("readings.json")).unwrap()).unwrap();
    for (name, expected) in table.iter().filter(|(_, expected)| expected.get("lint").is_some()) {
        let score = expected.get("score").map(|score| format!("score={}", score.as_str().unwrap()));
        let path = fixture(name);
        let mut arguments = vec!["lint", &path, "--json"];
        if let Some(score) = &score {
            arguments.extend(["--field", score]);
        }
        let found = folder.run(&arguments);
        assert_eq!(found.json().last().unwrap()["by_rule"], expected["lint"], "{name}: {found:?}");
    }
}

#[test]
fn there_is_no_false_calm() {
    let folder = Folder::new("lint-calm");
    let cases: [(&str, &str, Option<u64>); 4] = [
        (r#"{"old_log_probs": [-1, 0.5]}"#, "log-prob-above-zero", Some(2)),
        ("{\"score\": 1, \"values\": [1]}\n{\"values\": [1]}\n", "score-missing", None),
        ("{\"values\": []}\n{\"values\": [1]}\n", "empty-sequence", None),
        ("{\"values\": []}\n{\"values\": []}\n", "empty-sequence", None),
    ];
    for (text, rule, token) in cases {
        let found = lint(&folder, text, &[]);
        assert_eq!((found.code, rules(&found)), (1, vec![(rule.to_string(), token)]), "{text}: {found:?}");
    }
    // padding that a trainer filled
    for padding in ["1.0, 1.0", "-100, -100", "-3.5, -3.5", "NaN, NaN", "-1.5, -7.25, -0.5"] {
        let tail = padding.split(',').map(|_| "0").collect::<Vec<_>>().join(", ");
        let text = format!("{{\"mask\": [1, 1, {tail}], \"old_log_probs\": [-1, -2, {padding}]}}");
        let found = lint(&folder, &text, &[]);
        assert_eq!((found.code, rules(&found).len()), (0, 0), "{text}: {found:?}");
    }
    folder.file("x.jsonl", "{\"score\": 1, \"reward_model\": \"a\", \"acc\": 1}\n");
    let found = folder.run(&["lint", "x.jsonl"]).done().out;
    for word in ["found: score", "ignored: reward_model, acc", "not checked: ", "nothing-kept (needs mask)"] {
        assert!(found.contains(word), "{word}: {found}");
    }
    assert!(found.lines().all(|line| line.chars().count() <= 80), "{found}");
}
