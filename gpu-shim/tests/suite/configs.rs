//! Further configs for the tests of advantages, metrics and rollout corrections; those of the losses are in `losses`.

pub(crate) use tokenwise_gpu_golden::random::first_config as first;

use crate::losses;

/// Further configs.
pub(crate) fn of(name: &str) -> Vec<&'static str> {
    match name {
        "mean" | "kl_means" | "row_means" | "rollout_mismatch" => vec![r#"{"divisor": "count-plus-epsilon"}"#],
        "variance" => vec![r#"{"spread": "population"}"#, r#"{"divisor": "count-plus-epsilon"}"#],
        "explained_variance" => vec![r#"{"epsilon": 0, "spread": "population"}"#],
        "clip_fractions" => vec![
            r#"{"clip_low": 0.1, "clip_high": 0.3, "dual_clip": {"negative_only": 1.5}}"#,
            r#"{"dual_clip": {"both_signs": 1.1}, "divisor": "count-plus-epsilon"}"#,
        ],
        "row_normalize" => vec![r#"{"floor": 0.5}"#],
        "variance_proxy" => vec![r#"{"gradient_norm": 3, "divisor": "count-plus-epsilon"}"#],
        "last_k_credit" => vec![r#"{"k": 1}"#, r#"{"k": 1000000}"#],
        "monte_carlo_advantage" => vec![r#"{"gamma": 0.9, "across": "zero-step"}"#],
        "gae_decoupled" => vec![
            r#"{"gamma": 0.99, "lambda_value": 0.9, "lambda_policy": 0.5, "across": "zero-step"}"#,
            r#"{"gamma": 0.99, "lambda_value": 0.9, "lambda_policy": {"alpha": 0.05}}"#,
        ],
        "reinforce_plus_plus" => vec![r#"{"gamma": 0.9, "across": "zero-step", "whiten": {"scale": "unit"}}"#],
        "opd_advantage" => vec![r#"{"coefficient": 0.3}"#],
        "minillm_advantage" => vec![
            r#"{"gamma": 0.9, "length": "off"}"#,
            r#"{"gamma": 0.9, "length": "off", "from": "start", "across": "zero-step"}"#,
            r#"{"gamma": 0.9, "length": "kept-and-padding", "across": "zero-step"}"#,
            r#"{"gamma": 0.9, "length": "kept-and-padding"}"#,
        ],
        "vtrace" => vec![
            r#"{"gamma": 0.9, "lambda": 0.8, "rho_bar": 2, "c_bar": 0.8, "rho_bar_pg": 1.5}"#,
            r#"{"gamma": 0.9, "lambda": 0.5, "alpha": 0.9}"#,
        ],
        "retrace" => vec![
            r#"{"gamma": 0.9, "lambda": 0.9}"#,
            r#"{"gamma": 0.9, "lambda": 0.9, "coefficient": "lambda"}"#,
            r#"{"gamma": 0.9, "lambda": 0.9, "coefficient": "tree-backup"}"#,
            r#"{"gamma": 0.3, "coefficient": "importance"}"#,
        ],
        "puffer_advantage" => vec![
            r#"{"gamma": 0.9, "lambda": 0.9, "rho_bar": 0.7}"#,
            r#"{"gamma": 0.9, "lambda": 0.9, "variant": "v4", "c_bar": 0.9}"#,
        ],
        "kl_in_reward" => vec![
            r#"{"beta": 0.1, "kl": {"estimator": "k2"}}"#,
            r#"{"beta": 0.1, "kl": {"estimator": "k3", "bounds": "k3-only"}, "divisor": "count-plus-epsilon"}"#,
        ],
        "kl_in_scores" => vec![r#"{"beta": 0.5}"#],
        "clipped_rewards" => vec![r#"{"beta": 0.5, "low": -0.5, "high": 0.25}"#, r#"{"beta": -1}"#],
        "group_relative" => vec![
            r#"{"epsilon": 0, "spread": "population", "singleton": "raw"}"#,
            r#"{"scale": "unit", "singleton": "raw"}"#,
            r#"{"scale": "batch-deviation", "singleton": "raw"}"#,
            r#"{"scale": "batch-deviation", "spread": "population"}"#,
        ],
        "gpg_advantage" => vec![r#"{"norm": 3, "singleton": "raw"}"#],
        "max_rl" => vec![r#"{"divisor": "if-positive", "singleton": "raw"}"#, r#"{"epsilon": 1}"#],
        "length_weighted_baseline" => vec![r#"{"singleton": "raw"}"#],
        "gdpo" => vec![r#"{"group": {"scale": "unit", "singleton": "raw"}, "whiten": {"spread": "population"}}"#],
        "reinforce_plus_plus_baseline" => vec![r#"{"singleton": "raw", "whiten": {"scale": "unit"}}"#],
        "rollout_weights" | "rollout_weight_metrics" => vec![
            r#"{"level": "token", "bound": {"zero": {"lower": 0.5, "upper": 2}}, "normalize": "tokens"}"#,
            r#"{"level": "token", "bound": {"clamp": {"lower": 0.5, "upper": 2}}, "normalize": "by-level"}"#,
            r#"{"level": "sequence", "divisor": "count-plus-epsilon"}"#,
            r#"{"level": "sequence", "bound": "unbounded", "log_bound": 3, "normalize": "by-level"}"#,
            r#"{"level": "geometric", "bound": {"zero": {"lower": 0.9, "upper": 1.1}}, "normalize": "by-level"}"#,
            r#"{"level": "geometric", "bound": {"clamp": {"lower": 0.9, "upper": 1.1}}, "log_bound": null}"#,
        ],
        "rollout_gate" => vec![
            r#"{"level": "token"}"#,
            r#"{"level": "token", "mode": "clip"}"#,
            r#"{"level": "token", "statistic": "binary-kl", "lower": 0, "upper": 0.2}"#,
            r#"{"level": "token", "statistic": "total-variation", "lower": 0, "upper": 0.3}"#,
            r#"{"level": "sequence", "lower": 0.95, "upper": 1.2}"#,
            r#"{"level": "sequence", "statistic": "binary-kl", "lower": 0, "upper": 0.3}"#,
        ],
        "rollout_rejection" | "rollout_rejection_metrics" => vec![
            "{}",
            r#"{"criteria": [{"option": "token-k1", "lower": 0.4, "upper": 2.5}]}"#,
            r#"{"criteria": [{"option": "token-k2", "upper": 0.5}, {"option": "token-k3", "upper": 0.7}]}"#,
            r#"{"criteria": [{"option": "seq-sum-k1", "lower": 0.1, "upper": 50}, {"option": "token-k3", "upper": 2}]}"#,
            r#"{"criteria": [{"option": "seq-mean-k2", "upper": 0.7}, {"option": "seq-sum-k2", "upper": 300}]}"#,
            r#"{"criteria": [{"option": "seq-mean-k1", "lower": 0.9, "upper": 1.1}], "divisor": "count-plus-epsilon"}"#,
            r#"{"criteria": [{"option": "seq-max-k2", "upper": 3}, {"option": "seq-max-k3", "upper": 8}]}"#,
            r#"{"criteria": [{"option": "seq-mean-k3", "upper": 0.8}, {"option": "seq-sum-k3", "upper": 100}]}"#,
        ],
        "kl_mask" => vec![r#"{"tau": 0}"#],
        "sequence_veto" => vec![r#"{"lower": 0.2}"#, r#"{"lower": 0.01, "upper": 8}"#],
        "off_policy_sequence_mask" => vec![r#"{"threshold": 0.05}"#],
        _ => losses::configs(name),
    }
}
