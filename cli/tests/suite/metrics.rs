//! `tokenwise metrics`: the same numbers from every format, and from files of other programs.

use std::fs;

use serde_json::{json, Map, Value};

use crate::command::{fixture, Folder};

/// One line per batch.
pub(crate) fn metrics(folder: &Folder, file: &str, more: &[&str]) -> Vec<Value> {
    let lines = folder.run(&[&["metrics", file, "--json"], more].concat()).done().json();
    lines.into_iter().filter(|line| line.get("batches").is_none()).collect()
}

pub(crate) fn rows() -> Vec<Map<String, Value>> {
    let text = fs::read_to_string(fixture("rollouts.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const TOKENS: [&str; 10] = [
    "mask",
    "old_log_probs",
    "log_probs",
    "ref_log_probs",
    "rollout_log_probs",
    "advantages",
    "rewards",
    "values",
    "returns",
    "entropies",
];

/// The tensors of the two sequences, `[2, 3]`.
fn safetensors() -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    let mut add = |name: &str, shape: &[usize], numbers: Vec<f64>| {
        let from = data.len();
        data.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        header.insert(name.into(), json!({ "dtype": "F64", "shape": shape, "data_offsets": [from, data.len()] }));
    };
    let numbers = |name: &str| {
        rows()
            .iter()
            .flat_map(|row| row[name].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>())
            .collect()
    };
    for name in TOKENS {
        add(name, &[2, 3], numbers(name));
    }
    add("score", &[2], vec![1.0, 0.0]);
    add("step", &[2], vec![1.0, 1.0]);
    add("group", &[2], vec![5.0, 5.0]);
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat()
}

#[test]
fn every_kind_of_file_gives_the_same_numbers() {
    let folder = Folder::new("kinds");
    let rows = rows();
    let wanted = metrics(&folder, &fixture("rollouts.jsonl"), &[]);
    assert_eq!(wanted.len(), 1);
    assert_eq!((&wanted[0]["step"], &wanted[0]["sequences"], &wanted[0]["tokens"]), (&1.into(), &2.into(), &6.into()));
    assert_eq!(wanted[0]["metrics"]["critic/score/mean"], 0.5);
    assert_eq!(wanted[0]["metrics"]["response_length/mean"], 2.5);
    assert_eq!(wanted[0]["metrics"]["actor/entropy_loss"].as_f64().map(|x| (x * 1e6).round()), Some(1_050_000.0));
    folder.file("list.json", json!(rows).to_string());
    folder.file("nested.json", json!({"about": [1, {"x": 2}], "step": 1, "samples": rows}).to_string());
    let column = |name: &str| json!(rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>());
    let columns: Map<String, Value> =
        TOKENS.iter().chain(&["score", "group"]).map(|name| (name.to_string(), column(name))).collect();
    folder.file("columns.json", json!({"step": 1, "data": columns}).to_string());
    let names: Vec<&str> = TOKENS.iter().copied().chain(["score", "step", "group"]).collect();
    let cell = |row: &Map<String, Value>, name: &str| match &row[name] {
        Value::String(text) => text.clone(),
        other => format!("\"{other}\""),
    };
    let table: Vec<String> =
        rows.iter().map(|row| names.iter().map(|name| cell(row, name)).collect::<Vec<_>>().join(",")).collect();
    folder.file("rows.csv", format!("{}\n{}\n", names.join(","), table.join("\n")));
    let mut tokens = format!("sequence,score,step,group,{}\n", TOKENS.join(","));
    for (index, row) in rows.iter().enumerate() {
        for token in 0..3 {
            let cells: Vec<String> = TOKENS.iter().map(|name| row[*name][token].to_string()).collect();
            tokens += &format!(
                "s{index},{},{},{},{}\n",
                row["score"],
                row["step"],
                row["group"].as_str().unwrap(),
                cells.join(",")
            );
        }
    }
    folder.file("tokens.csv", tokens);
    folder.file("x.safetensors", safetensors());
    for file in [
        "list.json",
        "nested.json",
        "columns.json",
        "rows.csv",
        "tokens.csv",
        "x.safetensors",
        &fixture("rollouts.parquet"),
    ] {
        for profile in ["verl-0.9.1", "trl-1.16", "openrlhf-0.11", "paper"] {
            let wanted = metrics(&folder, &fixture("rollouts.jsonl"), &["--profile", profile]);
            assert_eq!(metrics(&folder, file, &["--profile", profile]), wanted, "{file}, {profile}");
        }
    }
}

#[test]
fn numbers_are_those_of_the_formulas() {
    let folder = Folder::new("numbers");
    let got = &metrics(&folder, &fixture("rollouts.jsonl"), &["--profile", "paper"])[0]["metrics"];
    let near = |key: &str, wanted: f64| {
        let value = got[key].as_f64().unwrap_or(f64::NAN);
        assert!(approx::abs_diff_eq!(value, wanted, epsilon = 1e-9), "{key}: {value}");
    };
    // advantages 0.7 twice, −0.7 three times; ratios e^0.1, 1, e^−0.3, 1, 1
    near("advantage/mean", -0.14);
    near("reward/mean", 0.5);
    near("ratio/kl", (-0.1 + 0.3) / 5.0);
    near("ratio/clip_fraction", 0.2);
    near("reference/kl", {
        let k3 = |d: f64| tokenwise::math::exp(-d) - 1.0 + d;
        (k3(0.2) + k3(0.25) + k3(-0.3) + k3(-0.5) + k3(0.0)) / 5.0
    });
    near("score/tied_groups", 0.0);
    let loss = -(0.7 * tokenwise::math::exp(0.1) + 0.7 - 0.7 * 0.8 - 0.7 - 0.7) / 5.0;
    near("loss/policy", loss);
    let wider =
        &metrics(&folder, &fixture("rollouts.jsonl"), &["--profile", "paper", "--clip-low", "0.5"])[0]["metrics"];
    assert_eq!(wider["ratio/clip_fraction"], 0.0);
}

#[test]
fn files_of_others_are_read_as_they_are() {
    let folder = Folder::new("others");
    let verl = &metrics(&folder, &fixture("7.jsonl"), &["--profile", "trl-1.16"])[0];
    assert_eq!((&verl["step"], &verl["sequences"], &verl["tokens"]), (&7.into(), &4.into(), &0.into()));
    assert_eq!(verl["metrics"]["reward"].as_f64().map(|x| (x * 3e6).round()), Some(2e6), "a NaN is no score to TRL");
    let trl = &metrics(
        &folder,
        &fixture("completions_00005.parquet"),
        &["--profile", "trl-1.16", "--field", "score=accuracy_reward"],
    )[0];
    assert_eq!(
        (&trl["step"], &trl["metrics"]["reward"], &trl["metrics"]["frac_reward_zero_std"]),
        (&5.into(), &0.75.into(), &0.5.into())
    );
    let unipo = &metrics(&folder, &fixture("unipo.json"), &[])[0];
    assert_eq!(
        (&unipo["step"], &unipo["tokens"], &unipo["metrics"]["critic/score/mean"]),
        (&3.into(), &6.into(), &1.0.into())
    );
    assert!(unipo["metrics"]["actor/kl_loss"].as_f64().unwrap() > 0.0);
}

#[test]
fn batches_are_steps_or_as_many_tokens_as_asked() {
    let folder = Folder::new("batches");
    let line = |step: Option<u32>, score: f64| {
        let step = step.map_or(String::new(), |step| format!("\"step\": {step}, "));
        format!("{{{step}\"score\": {score}, \"old_log_probs\": [-1, -2], \"advantages\": {score}}}\n")
    };
    folder
        .file("steps.jsonl", [line(Some(1), 1.0), line(Some(1), 0.0), line(Some(2), 3.0), line(Some(3), 5.0)].concat());
    let got: Vec<_> = metrics(&folder, "steps.jsonl", &[])
        .iter()
        .map(|line| (line["step"].as_u64(), line["sequences"].as_u64(), line["metrics"]["critic/score/mean"].as_f64()))
        .collect();
    assert_eq!(got, [(Some(1), Some(2), Some(0.5)), (Some(2), Some(1), Some(3.0)), (Some(3), Some(1), Some(5.0))]);
    folder.file("plain.jsonl", (0..10).map(|i| line(None, f64::from(i))).collect::<String>());
    let sizes = |tokens: &str| -> Vec<u64> {
        metrics(&folder, "plain.jsonl", &["--batch-tokens", tokens])
            .iter()
            .map(|line| line["sequences"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(sizes("1000"), [10]);
    assert_eq!(sizes("8"), [4, 4, 2]);
    let done = folder.run(&["metrics", "plain.jsonl", "--batch-tokens", "8"]).done();
    assert!(done.out.contains("3 batches") && done.out.contains("split into batches"), "{}", done.out);
    assert!(done.out.contains("Merged by key") && done.out.contains("highest"), "{}", done.out);
    let all = folder.run(&["metrics", "plain.jsonl", "--batch-tokens", "8", "--json"]).done().json();
    let merged = &all[3];
    assert_eq!((all.len(), &merged["batches"], &merged["sequences"]), (4, &3.into(), &10.into()));
    // batches of scores 0..4, 4..8, 8..10: their means are 1.5, 5.5 and 8.5
    for (key, value, rule) in
        [("critic/score/mean", 15.5 / 3.0, "mean"), ("critic/score/max", 9.0, "max"), ("critic/score/min", 0.0, "min")]
    {
        assert_eq!((&merged["metrics"][key], &merged["merged_by"][key]), (&value.into(), &rule.into()));
    }
}

#[test]
fn every_profile_prints_the_analysis_and_what_a_dual_game_reads() {
    let folder = Folder::new("analysis");
    let of = |profile: &str| -> Map<String, Value> {
        let line = metrics(&folder, &fixture("rollouts.jsonl"), &["--profile", profile]).remove(0);
        let all = line["metrics"].as_object().unwrap().clone();
        all.into_iter().filter(|(key, _)| key.starts_with("analysis/") || key.starts_with("dual_game/")).collect()
    };
    let wanted = of("paper");
    let keys: Vec<&str> = wanted.keys().map(String::as_str).collect();
    assert_eq!(keys.iter().filter(|key| key.starts_with("analysis/")).count(), 5, "{keys:?}");
    for key in ["KL_per_token", "wH_per_token", "token_entropy_mean", "reward_std", "token_count"] {
        assert!(keys.contains(&format!("dual_game/{key}").as_str()), "{key}: {keys:?}");
    }
    assert_eq!(wanted["dual_game/token_count"], 5.0);
    for profile in ["verl-0.9.1", "trl-1.16", "openrlhf-0.11"] {
        assert_eq!(of(profile), wanted, "{profile}");
    }
}
