//! Run folders with curves of known shape, for the tests of the report.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

/// The curves of a run; everything else follows from its seed.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Reward at the end.
    pub(crate) end: f64,
    /// Factor of the entropy.
    pub(crate) entropy: f64,
    /// beta at the end.
    pub(crate) beta: f64,
    /// lambda in the first half; 0 in the second.
    pub(crate) lambda: f64,
}

pub(crate) const STEPS: u64 = 200;

/// A folder that is removed when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tokenwise-report-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A number in −1 … 1 that depends on the arguments only.
fn noise(seed: u64, step: u64, salt: u64) -> f64 {
    let mut x = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ salt << 40;
    for _ in 0..3 {
        x ^= x >> 31;
        x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Writes a run; without `final.json` and only the first `steps` lines if `steps` is below the wanted number.
pub(crate) fn run(folder: &Path, task: &str, variant: &str, seed: u64, steps: u64, shape: Shape) {
    let path = folder.join(task).join(variant).join(format!("seed-{seed}"));
    fs::create_dir_all(&path).unwrap();
    let group = variant.split('+').next().unwrap();
    let about = json!({
        "task": task, "group": group, "variant": variant, "seed": seed, "steps": STEPS, "algorithm": "ppo",
        "settings": {}, "parameters": 102_349, "warmup": null,
    });
    fs::write(path.join("run.json"), about.to_string()).unwrap();
    let (mut metrics, mut timing, mut distributions) = (String::new(), String::new(), String::new());
    for step in 1..=steps {
        let x = step as f64 / STEPS as f64;
        let level = 0.1 + (shape.end - 0.1) * (1.0 - (1.0 - x) * (1.0 - x)) + 0.004 * noise(seed, 0, 1);
        let reward = level + 0.02 * noise(seed, step, 2);
        let entropy = shape.entropy * (0.3 - 0.25 * x) * (1.0 + 0.05 * noise(seed, step, 3));
        let (weighted, budget) = (0.1 * entropy, 0.045 * (1.0 - 0.5 * x) * shape.entropy);
        let spread = 0.2 * shape.entropy;
        let line = json!({
            "step": step,
            "analysis/reward_sum_mean": reward, "pass@1": reward, "pass@8": (reward * 1.2).min(1.0),
            "analysis/entropy_per_token_mean": entropy, "analysis/wH_per_token": weighted,
            "analysis/wH_sum": weighted * 900.0, "analysis/covariance_mean": spread * 0.2 * (1.0 - x),
            "analysis/corr": 0.3 * (1.0 - x) + 0.02 * noise(seed, step, 4),
            "analysis/cov_p50": 0.0, "analysis/cov_p90": spread, "analysis/H_p50": entropy, "analysis/H_p90": 2.0 * entropy,
            "dual_game/lambda": if x < 0.5 { shape.lambda } else { 0.0 }, "dual_game/beta": shape.beta * x,
            "dual_game/B_token": budget, "dual_game/usage_ratio": weighted / budget, "dual_game/KL_per_token": 0.05 * x,
            "actor/clipfrac_upper": 0.02 + 0.01 * noise(seed, step, 5), "actor/clipfrac_lower": 0.01,
        });
        metrics += &format!("{line}\n");
        let stages = json!({"rollout": 0.12, "actor": 0.2});
        let times = json!({"step": step, "seconds": 0.33, "stages": stages, "computing": 0.3, "formulas": 0.006});
        timing += &format!("{times}\n");
        if step % 50 == 0 {
            let edges: Vec<f64> = (0..=20).map(|k| spread * (f64::from(k) - 10.0) / 4.0).collect();
            let counts: Vec<u64> = (0..20).map(|k: u64| 1000 >> k.abs_diff(10)).collect();
            let of = json!({"edges": edges, "counts": counts});
            distributions += &format!("{}\n", json!({"step": step, "H": of, "cov": of}));
        }
    }
    fs::write(path.join("metrics.jsonl"), metrics).unwrap();
    fs::write(path.join("timing.jsonl"), timing).unwrap();
    fs::write(path.join("distributions.jsonl"), distributions).unwrap();
    if steps == STEPS {
        fs::write(path.join("final.json"), "{}").unwrap();
    }
}

/// Five seeds of each group and of two switches, on both tasks; C1 is better than C0, C1 with a fixed target worse.
pub(crate) fn experiment(folder: &Path) {
    for task in ["two-digit", "one-digit"] {
        for seed in 0..5 {
            let shape = |end: f64, entropy: f64, beta: f64, lambda: f64| Shape {
                end: end + 0.01 * noise(seed, 7, 7),
                entropy,
                beta,
                lambda,
            };
            run(folder, task, "C0", seed, STEPS, shape(0.8, 1.0, 0.0, 0.0));
            run(folder, task, "C0k", seed, STEPS, shape(0.79 + 0.02 * noise(seed, 1, 9), 1.0, 0.05, 0.0));
            run(folder, task, "C1", seed, STEPS, shape(0.9, 1.3, 0.05, 0.4));
            run(folder, task, "C2", seed, STEPS, shape(0.8 + 0.03 * noise(seed, 2, 9), 1.1, 0.05, 0.2));
            run(folder, task, "C3", seed, STEPS, shape(0.75, 0.8, 0.05, 0.0));
            run(folder, task, "C1+target=fixed", seed, STEPS, shape(0.35, 1.2, 0.9, 0.1));
            run(folder, task, "C1+gamma=0.8", seed, STEPS, shape(0.91, 1.3, 0.05, 0.3));
        }
    }
}
