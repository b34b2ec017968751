//! Alternative names of the inputs of the dual game and the controllers. Two spellings at once are an error.

use std::borrow::Cow;

use serde_json::Value;

type Names = &'static [(&'static str, &'static [&'static str])];

const GAME_INPUTS: Names = &[
    ("ref_log_probs", &["ref_log_prob"]),
    ("structural", &["structural_weights", "token_weights", "importance", "weights", "w"]),
];
const GAME: Names = &[
    ("weight", &["token_weight", "weight_type"]),
    ("gradient", &["grad_mode"]),
    ("lambda", &["lam", "lambda_"]),
    ("clip", &["clip_ratio", "epsilon"]),
    ("clip_low", &["clip_ratio_low", "epsilon_low"]),
    ("clip_high", &["clip_ratio_high", "epsilon_high"]),
    ("branch_value", &["branch"]),
    ("branch_spread", &["spread"]),
    ("scope", &["z_scope"]),
    ("c", &["structural_c", "complexity_weight"]),
    ("alpha", &["structural_alpha", "surprisal_weight"]),
    ("structural_beta", &["beta_structural", "drift_weight"]),
];
const KL_INPUTS: Names =
    &[("kl", &["kls", "KL", "kl_values", "current_kl", "observations"]), ("samples", &["n", "n_steps", "batch_size"])];
const KL: Names = &[
    ("samples", &["n", "n_steps", "batch_size"]),
    ("beta", &["beta0", "beta_init", "init_beta", "initial_beta", "coef", "kl_coef", "init_kl_coef"]),
    ("target", &["target_kl", "D"]),
    ("learning_rate", &["lr", "eta", "eta_beta", "beta_lr"]),
    ("beta_min", &["min_beta"]),
    ("adaptive", &["adaptive_target"]),
    ("window", &["W"]),
];
const BUDGET_INPUTS: Names = &[
    ("wH_sum", &["wh_sum", "wH"]),
    ("token_count", &["token_counts", "tokens", "N", "n"]),
    ("reward_std", &["reward_stds"]),
    ("reward_sum_mean", &["reward_mean", "rewards", "reward"]),
    ("step", &["steps"]),
    ("B0", &["B", "budget"]),
];
const BUDGET: Names = &[
    ("token_count", &["token_counts", "tokens", "N", "n"]),
    ("reward_std", &["reward_stds"]),
    ("reward_sum_mean", &["reward_mean", "rewards", "reward"]),
    ("lambda", &["lambda0", "lambda_init", "init_lambda", "initial_lambda"]),
    ("learning_rate", &["lr", "eta", "eta_lambda", "lambda_lr", "alpha_lambda"]),
    ("lambda_max", &["max_lambda"]),
    ("wH_min", &["wh_min"]),
    ("wH_max", &["wh_max"]),
    ("B0", &["b0", "B", "budget"]),
    ("warmup", &["warmup_steps", "warm_up", "K"]),
    ("adaptive", &["adaptive_B0", "adaptive_b0"]),
    ("window", &["W"]),
    ("schedule", &["budget_schedule"]),
    ("total_steps", &["steps", "T"]),
    ("a", &["share"]),
    ("ema_decay", &["decay"]),
    ("B_min", &["b_min", "budget_min"]),
    ("collapse_guard", &["guard"]),
];
/// Values of any parameter.
const WORDS: Names = &[
    ("kl-gated", &["kl-gate", "gated"]),
    ("detached", &["detach"]),
    ("advantage-jump", &["jump"]),
    ("variance", &["var"]),
    ("inter-quartile-range", &["iqr"]),
    ("range", &["max-min"]),
    ("same", &["exact"]),
    ("sequence", &["per-sequence"]),
    ("constant", &["none"]),
    ("reward-std-usage", &["rewardstdusage", "decay-target"]),
    ("exponential", &["exp"]),
];

/// The case with the names that the operations read.
pub(in crate::golden) fn canonical(case: &Value) -> Result<Cow<'_, Value>, String> {
    let (inputs, params) = match case["op"].as_str() {
        Some("dual_game") => (GAME_INPUTS, GAME),
        Some("adaptive_kl" | "linear_kl") => (KL_INPUTS, KL),
        Some("entropy_budget") => (BUDGET_INPUTS, BUDGET),
        _ => return Ok(Cow::Borrowed(case)),
    };
    let mut case = case.clone();
    for (section, names) in [("inputs", inputs), ("params", params)] {
        let Some(map) = case.get_mut(section).and_then(Value::as_object_mut) else { continue };
        for (name, others) in names {
            let spellings = std::iter::once(name).chain(*others);
            let there: Vec<&str> = spellings.copied().filter(|key| map.contains_key(*key)).collect();
            match there[..] {
                [one] => {
                    let value = map.remove(one).unwrap_or_default();
                    map.insert((*name).to_owned(), value);
                }
                [one, two, ..] => return Err(format!("\"{one}\" and \"{two}\" mean the same")),
                [] => (),
            }
        }
        for value in map.values_mut() {
            let Some(text) = value.as_str() else { continue };
            let plain = text.to_lowercase().replace('_', "-");
            let known = WORDS.iter().find(|(_, others)| others.contains(&plain.as_str()));
            *value = known.map_or(plain.as_str(), |(name, _)| name).into();
        }
    }
    Ok(Cow::Owned(case))
}
