//! The operations by name.

mod advantage;
mod divergence;
mod loss;
mod metric;
mod policy;
mod reward;

use super::case::{Case, Failure, Number, Ran};

/// Runs the operation a case names.
pub(super) fn run<R: Number>(case: &Case<'_>) -> Ran {
    match case.op {
        "token_log_probs" => policy::token_log_probs::<R>(case),
        "entropy" => policy::entropy::<R>(case),
        "logits_grad" => policy::logits_grad::<R>(case),
        "sum_pi_squared" => policy::sum_pi_squared::<R>(case),
        "kl" => divergence::kl::<R>(case),
        "kl_full" => divergence::kl_full::<R>(case),
        "place_scores" => reward::place_scores::<R>(case),
        "shape_rewards" => reward::shape_rewards::<R>(case),
        "kl_in_reward" => reward::kl_in_reward::<R>(case),
        "overlong_penalty" => reward::overlong_penalty::<R>(case),
        "discounted_returns" => advantage::discounted_returns::<R>(case),
        "gae" => advantage::gae::<R>(case),
        "masked_whiten" => advantage::masked_whiten::<R>(case),
        "uniform_credit" => advantage::uniform_credit::<R>(case),
        "last_k_credit" => advantage::last_k_credit::<R>(case),
        "attention_credit" => advantage::attention_credit::<R>(case),
        "monte_carlo_advantage" => advantage::monte_carlo_advantage::<R>(case),
        "grpo" => advantage::grpo::<R>(case),
        "rloo" => advantage::rloo::<R>(case),
        "aggregate" => loss::aggregate::<R>(case),
        "surrogate" => loss::surrogate::<R>(case),
        "ppo_clip" => loss::ppo_clip::<R>(case),
        "value_loss" => loss::value_loss::<R>(case),
        "entropy_bonus" => loss::entropy_bonus::<R>(case),
        "masked_mean" => metric::masked_mean::<R>(case),
        "masked_var" => metric::masked_var::<R>(case),
        "correlation" => metric::correlation::<R>(case),
        "explained_variance" => metric::explained_variance::<R>(case),
        "kl_means" => metric::kl_means::<R>(case),
        "clip_fractions" => metric::clip_fractions::<R>(case),
        "analysis" => metric::analysis::<R>(case),
        other => Err(Failure::Malformed(format!("op: unknown operation \"{other}\""))),
    }
}
