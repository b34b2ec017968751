//! `tokenwise metrics` prints the same values as the library and the frameworks.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{json, Map, Value};
use tokenwise::{
    advantage::WeightedSum,
    loss::{ppo_clip, PolicyLoss, PolicyLossInput},
    metric::{
        openrlhf_metrics, trl_metrics, verl_metrics, Lengths, OpenRlhfConfig, OpenRlhfInput, RewardSource, TrlConfig,
        TrlInput, TrlLevel, TrlLoss, TrlOutput, TrlRewards, VerlConfig, VerlInput,
    },
    profile::{compare, compare_scratch_len, CompareConfig, CompareScratch, ProfileInput, QuantityShape},
    rollout::{rollout_weights, RolloutInput},
    Batch, Groups, Layout, Mask, Moments, Profile,
};

use crate::{
    command::{fixture, Folder},
    metrics::{metrics, rows},
};

const KEEP: [bool; 6] = [true, true, false, true, true, true];

/// A column of the two sequences of `rollouts.jsonl`.
fn column(name: &str) -> Vec<f64> {
    let numbers = |row: &Map<String, Value>| -> Vec<f64> {
        row[name].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    rows().iter().flat_map(numbers).collect()
}

fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(2, 3).unwrap(), Mask::new(&KEEP)).unwrap()
}

fn near(key: &str, got: &Value, wanted: f64, tolerance: f64) {
    match got.as_f64() {
        Some(got) => assert!(
            approx::relative_eq!(got, wanted, epsilon = tolerance, max_relative = tolerance),
            "{key}: {got} ≠ {wanted}"
        ),
        None => assert!(got.is_null() && !wanted.is_finite(), "{key}: {got} ≠ {wanted}"),
    }
}

/// Whether a framework logs it; the others are printed for every one.
fn is_logged(key: &str) -> bool {
    !key.starts_with("analysis/") && !key.starts_with("dual_game/")
}

fn assert_entries(got: &Value, wanted: impl Iterator<Item = (&'static str, f64)>) {
    let wanted: Vec<_> = wanted.collect();
    let keys: Vec<&str> = got.as_object().unwrap().keys().map(String::as_str).filter(|key| is_logged(key)).collect();
    assert_eq!(keys, wanted.iter().map(|(key, _)| *key).collect::<Vec<_>>());
    wanted.iter().for_each(|(key, value)| near(key, &got[key], *value, 1e-15));
}

fn policy(profile: Profile, weights: Option<&[f64]>) -> PolicyLoss {
    let (new, old, advantages) = (column("log_probs"), column("old_log_probs"), column("advantages"));
    let input = PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights };
    ppo_clip(&batch(), input, &profile.ppo(), &mut [0.0; 6]).unwrap()
}

#[test]
fn numbers_are_those_of_the_metric_sets() {
    let folder = Folder::new("sets");
    let got = |profile: Profile| {
        let more = ["--profile", profile.name(), "--max-response", "3"];
        metrics(&folder, &fixture("rollouts.jsonl"), &more)[0]["metrics"].clone()
    };
    let names = ["log_probs", "old_log_probs", "ref_log_probs", "rollout_log_probs", "advantages", "rewards"];
    let [new, old, reference, rollout, advantages, rewards] = names.map(column);
    let [values, returns, entropies] = ["values", "returns", "entropies"].map(column);

    let input = VerlInput {
        scores: Some(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]),
        rewards: Some(&rewards),
        advantages: Some(&advantages),
        returns: Some(&returns),
        values: Some(&values),
        response_lengths: Some(Lengths { tokens: &[2, 3], limit: 3 }),
        log_probs: Some(&new),
        ref_log_probs: Some(&reference),
        old_log_probs: Some(&old),
        rollout_log_probs: Some(&rollout),
        entropies: Some(&entropies),
        policy_loss: Some(policy(Profile::Verl0_9_1, None)),
        ..Default::default()
    };
    let found = verl_metrics(&batch(), input, &VerlConfig::default(), &mut []).unwrap();
    assert_entries(&got(Profile::Verl0_9_1), found.entries());

    let groups = Groups::contiguous(&[2]).unwrap();
    let profile = Profile::Trl1_16;
    let sampler = RolloutInput { old_log_probs: &old[..], rollout_log_probs: &rollout };
    let mut weights = [0.0; 6];
    rollout_weights(&batch(), sampler, &profile.rollout(), &mut weights).unwrap();
    let input = TrlInput {
        log_probs: Some(&new),
        old_log_probs: Some(&old),
        ref_log_probs: Some(&reference),
        rollout_log_probs: Some(&rollout),
        weights: Some(&weights),
        advantages: Some(&advantages),
        entropies: Some(&entropies),
        loss: Some(TrlLoss::Clipped(policy(profile, Some(&weights)))),
        rewards: Some(TrlRewards { groups, sources: &[1.0, 0.0], source_weights: &[1.0] }),
        completion_lengths: Some(&[2, 3]),
        ..Default::default()
    };
    let config = TrlConfig { weight_level: TrlLevel::Sequence, ..Default::default() };
    let output = TrlOutput { per_source: &mut [RewardSource::default()], scratch: &mut [Moments::default()] };
    assert_entries(&got(profile), trl_metrics(&batch(), input, &config, output).unwrap().entries());

    let input = OpenRlhfInput {
        log_probs: Some(&old),
        ref_log_probs: Some(&reference),
        entropies: Some(&entropies),
        rewards: Some(&rewards),
        scores: Some(&[1.0, 0.0]),
        groups: Some(groups),
        policy_loss: Some(policy(Profile::OpenRlhf0_11, None)),
        ..Default::default()
    };
    let found = openrlhf_metrics(&batch(), input, &OpenRlhfConfig::default(), &mut [Moments::default()]).unwrap();
    assert_entries(&got(Profile::OpenRlhf0_11), found.entries());
}

#[test]
fn differences_are_those_of_the_comparison() {
    let folder = Folder::new("differences");
    let profiles = [Profile::Verl0_9_1, Profile::Trl1_16];
    let line = &metrics(&folder, &fixture("rollouts.jsonl"), &["--diff", "trl-1.16"])[0];
    let diff = &line["diff"];
    assert_eq!(diff["profile"], "trl-1.16");
    assert_eq!(diff["metrics"]["reward"], 0.5);
    assert_eq!(diff["differ"][0]["keys"], json!(["actor/pg_loss", "policy_loss"]));
    assert!(diff["only_here"].as_array().unwrap().contains(&"critic/score/max".into()));
    assert!(diff["only_there"].as_array().unwrap().contains(&"reward_std".into()));

    let names = ["log_probs", "old_log_probs", "ref_log_probs", "rollout_log_probs", "values"];
    let [new, old, reference, rollout, values] = names.map(column);
    let input = ProfileInput {
        rewards: &[0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        scores: Some(&[1.0, 0.0]),
        values: Some(&values),
        predictions: None,
        log_probs: &new,
        old_log_probs: &old,
        ref_log_probs: Some(&reference),
        rollout_log_probs: Some(&rollout),
    };
    let groups = Groups::contiguous(&[2]).unwrap();
    let sizes = compare_scratch_len(&batch(), &groups).unwrap();
    let scratch = CompareScratch {
        tokens: &mut vec![0.0; sizes.tokens],
        sequences: &mut vec![0.0; sizes.sequences],
        moments: &mut vec![Moments::default(); sizes.groups],
        sums: &mut vec![WeightedSum::default(); sizes.groups],
        keep: &mut vec![false; sizes.keep],
    };
    let mut wanted = Vec::new();
    let sides = profiles.map(Profile::conventions);
    compare(&batch(), &groups, input, sides, &CompareConfig::default(), scratch, |difference| {
        let token = difference.quantity.shape() == QuantityShape::Tokens;
        let place = difference.index.map(|index| if token { index / 3 + 1 } else { index + 1 });
        let token = difference.index.filter(|_| token).map(|index| index % 3 + 1);
        let causes: Vec<Value> = difference
            .causes()
            .map(|cause| {
                let values = cause.values.map(|x| format!("{x:?}"));
                json!({ "convention": cause.convention.name(), "values": values })
            })
            .collect();
        wanted.push((difference.quantity.name(), difference.count, place, token, causes, difference.values));
    })
    .unwrap();
    let results = diff["results"].as_array().unwrap();
    assert_eq!(results.len(), wanted.len());
    for (got, (name, count, place, token, causes, values)) in results.iter().zip(wanted) {
        assert_eq!((&got["result"], &got["entries"]), (&name.into(), &count.into()));
        assert_eq!((&got["place"], &got["token"], &got["causes"]), (&json!(place), &json!(token), &json!(causes)));
        (0..2).for_each(|side| near(name, &got["values"][side], values[side].unwrap(), 1e-15));
    }
}

#[test]
fn a_table_tells_what_differs_where_and_why() {
    let folder = Folder::new("diff");
    let table = |more: &[&str]| folder.run(&[&["metrics", &fixture("rollouts.jsonl")], more].concat()).done().out;
    let out = table(&["--profile", "verl-0.9.1", "--diff", "trl-1.16"]);
    for words in [
        "Metrics that differ",
        "actor/pg_loss",
        "Logged by verl-0.9.1, not by trl-1.16",
        "reward_std",
        "row 2, token 2",
        "    kl_reward.beta: 0.001 → 0.05\n",
        "    group.epsilon: 1e-6 → 0.0001\n",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let same = table(&["--diff", "verl-0.9.1"]);
    assert!(same.contains("have the same value") && same.contains("No result of the chain differs"), "{same}");
    let scores = folder.run(&["metrics", &fixture("7.jsonl"), "--diff", "paper"]).done().out;
    assert!(scores.contains("Results were not compared"), "{scores}");
    folder
        .run(&["metrics", &fixture("7.jsonl"), "--kl-coefficient", "inf"])
        .refused(2, &["--kl-coefficient", "finite"]);
    // a number below 0 is a number, not another option
    folder.run(&["metrics", &fixture("7.jsonl"), "--kl-coefficient", "-0.1"]).done();
    folder
        .run(&["metrics", &fixture("7.jsonl"), "--clip-low", "-1"])
        .refused(2, &["--clip-low: expected a number of at least 0, got -1"]);
}

#[test]
fn verl_said_the_same_of_the_same_batch() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/metric/verl_metrics.verl.json");
    let golden: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let folder = Folder::new("golden");
    let names = ["padded-f64", "holes-f64", "rows-5-f64"];
    let cases =
        golden["cases"].as_array().unwrap().iter().filter(|case| names.iter().any(|name| case["name"] == *name));
    let mut seen = 0;
    for case in cases {
        let cols = case["cols"].as_u64().unwrap() as usize;
        let mut text = String::new();
        for row in 0..case["rows"].as_u64().unwrap() as usize {
            let mut line = Map::new();
            line.insert("mask".into(), json!(case["mask"].as_array().unwrap()[row * cols..][..cols]));
            for (name, numbers) in case["inputs"].as_object().unwrap() {
                let numbers = numbers.as_array().unwrap();
                let (name, value) = match name.as_str() {
                    "response_lengths" => ("response_length", numbers[row].clone()),
                    "prompt_lengths" => ("prompt_length", numbers[row].clone()),
                    "scores" => ("token_level_scores", json!(numbers[row * cols..][..cols])),
                    name => (name, json!(numbers[row * cols..][..cols])),
                };
                line.insert(name.into(), value);
            }
            text += &format!("{}\n", Value::from(line));
        }
        folder.file("golden.jsonl", text);
        let parameter = |name: &str| case["params"][name].to_string();
        let more = [
            "--max-response",
            &cols.to_string(),
            "--max-prompt",
            &parameter("prompt_limit"),
            "--kl-coefficient",
            &parameter("kl_coefficient"),
            "--entropy-coefficient",
            &parameter("entropy_coefficient"),
        ];
        let got = &metrics(&folder, "golden.jsonl", &more)[0]["metrics"];
        // Σ π² and the gradient norm cannot be in a file; the generator has no total
        let wanted: BTreeMap<&str, f64> = case["expect"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| !key.starts_with("variance_proxy/"))
            .map(|(key, value)| (key.as_str(), value.as_f64().unwrap_or(f64::NAN)))
            .collect();
        let mut keys: Vec<&str> =
            got.as_object().unwrap().keys().map(String::as_str).filter(|key| is_logged(key)).collect();
        keys.retain(|key| *key != "perf/total_num_tokens");
        keys.sort_unstable();
        assert_eq!(keys, wanted.keys().copied().collect::<Vec<_>>(), "{}", case["name"]);
        wanted.iter().for_each(|(key, value)| near(key, &got[key], *value, 1e-9));
        seen += 1;
    }
    assert_eq!(seen, names.len());
}
