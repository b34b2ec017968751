//! The files of a run.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use tokenwise_recorder::{read_history, read_lines};

use crate::folder::Folder;

fn lines(path: &Path) -> Vec<serde_json::Map<String, Value>> {
    read_lines(path).unwrap()
}

#[test]
fn a_run_leaves_every_file_with_its_keys() {
    let folder = Folder::new();
    folder.run(&["--task", "two-digit", "--groups", "C1", "--seeds", "5", "--steps", "21", "--gamma", "0.8"]);
    let run = folder.path().join("two-digit/C1+gamma=0.8/seed-5");

    let description: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    assert_eq!((&description["variant"], &description["gamma"]), (&"C1+gamma=0.8".into(), &0.8.into()));
    assert!(description["warmup"]["steps"].as_u64().unwrap() > 0);

    let metrics = lines(&run.join("metrics.jsonl"));
    assert_eq!(metrics.len(), 21);
    let every_step = [
        "analysis/entropy_per_token_mean",
        "analysis/covariance_mean",
        "analysis/wH_sum",
        "analysis/wH_per_token",
        "analysis/reward_sum_mean",
        "analysis/corr",
        "dual_game/lambda",
        "dual_game/beta",
        "dual_game/KL_per_token",
        "dual_game/wH_per_token",
        "dual_game/token_entropy_mean",
        "dual_game/reward_std",
        "dual_game/token_count",
        "actor/entropy",
        "actor/pg_loss",
        "actor/ppo_kl",
        "actor/clipfrac_upper",
        "actor/clipfrac_lower",
        "actor/grad_norm",
        "critic/vf_loss",
        "critic/values/mean",
        "pass@1",
        "pass@8",
        "response_length/mean",
    ];
    for (step, line) in metrics.iter().enumerate() {
        assert_eq!(line["step"], step);
        for key in every_step {
            assert!(line[key].is_number(), "{key} of step {step}");
        }
        assert_eq!(line.contains_key("analysis/H_p90"), step % 10 == 0, "step {step}");
        // the budget is known after its warm-up of ten steps
        assert_eq!(line.contains_key("dual_game/B_token"), step >= 10, "step {step}");
    }

    let distributions = lines(&run.join("distributions.jsonl"));
    assert_eq!(distributions.iter().map(|line| line["step"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 20]);
    for line in &distributions {
        let tokens = metrics[line["step"].as_u64().unwrap() as usize]["dual_game/token_count"].as_f64().unwrap();
        for key in ["H", "cov"] {
            let counts = line[key]["counts"].as_array().unwrap();
            assert_eq!(line[key]["edges"].as_array().unwrap().len(), counts.len() + 1);
            assert_eq!(counts.iter().fold(0.0, |sum, count| sum + count.as_f64().unwrap()), tokens);
        }
    }

    let rollouts = lines(&run.join("rollouts.jsonl"));
    assert_eq!(rollouts.iter().map(|line| line["step"].as_u64().unwrap()).collect::<BTreeSet<_>>(), [0, 10, 20].into());
    for line in &rollouts {
        let length = line["tokens"].as_array().unwrap().len();
        for key in ["old_log_probs", "ref_log_probs", "values", "rewards", "advantages", "returns", "mask"] {
            assert_eq!(line[key].as_array().unwrap().len(), length, "{key}");
        }
    }

    let history = read_history(&run.join("entropy_history_C1+gamma=0.8_seed5.json")).unwrap();
    assert_eq!(history.len(), 21);
    for (record, line) in history.iter().zip(&metrics) {
        assert_eq!(record.entropy, line["actor/entropy"].as_f64().unwrap());
    }
    for line in lines(&run.join("timing.jsonl")) {
        let [formulas, computing] = ["formulas", "computing"].map(|key| line[key].as_f64().unwrap());
        assert!(0.0 < formulas && formulas < computing, "{line:?}");
    }
}

#[test]
fn grpo_trains_without_a_critic() {
    let folder = Folder::new();
    folder.run(&["--algorithm", "grpo", "--task", "one-digit", "--groups", "C0", "--seeds", "0", "--steps", "5"]);
    let metrics = lines(&folder.path().join("one-digit/C0+algorithm=grpo/seed-0/metrics.jsonl"));
    assert_eq!(metrics.len(), 5);
    for line in &metrics {
        assert!(!line.contains_key("critic/vf_loss"));
        assert_eq!((&line["dual_game/lambda"], &line["dual_game/beta"]), (&0.0.into(), &0.0.into()));
    }
}
