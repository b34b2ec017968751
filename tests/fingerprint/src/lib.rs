//! One fingerprint per formula and number type: a hash over the bits of its results on batches made to find differences
//! (holes, padding, empty rows, poison in dropped slots, lengths around the widths of lanes, extreme and undefined numbers).
//!
//! The same program runs on every target; equal fingerprints mean equal bits. It allocates nothing and needs less than 64 KiB of
//! stack, so that a microcontroller can run it.
//!
//! To add a formula, write a function of a case and an output in the file of its stage and name it in [`fingerprints`].
#![no_std]
#![forbid(unsafe_code)]

mod advantage;
mod cases;
mod divergence;
mod hash;
mod inputs;
mod loss;
mod math;
mod metric;
mod policy;
mod reward;
mod shapes;
mod statistics;

use cases::{tokens, vocabulary};
use math::sweep;

/// Calls `report` with the name (`"gae/f32"`) and the fingerprint of every formula, in a fixed order.
pub fn fingerprints(report: &mut dyn FnMut(&str, u64)) {
    macro_rules! each {
        ($($name:literal: $run:ident($formula:path),)*) => {$(
            // only a mistake in this crate can keep a case from being built; the 0 shows it
            report(concat!($name, "/f32"), $run::<f32>($formula).unwrap_or(0));
            report(concat!($name, "/f64"), $run::<f64>($formula).unwrap_or(0));
        )*};
    }
    each! {
        "exp": sweep(tokenwise::math::exp),
        "ln": sweep(tokenwise::math::ln),
        "sqrt": sweep(tokenwise::math::sqrt),
        "moments": tokens(statistics::moments),
        "co_moments": tokens(statistics::co_moments),

        "shift": tokens(policy::shift),
        "log_probs_and_entropy": vocabulary(policy::log_probs_and_entropy),
        "token_log_probs": vocabulary(policy::token_log_probs),
        "entropy": vocabulary(policy::entropy),
        "sum_squared_probs": vocabulary(policy::sum_squared_probs),
        "logits_gradient": vocabulary(policy::logits_gradient),

        "kl_estimate": tokens(divergence::kl_estimate),
        "kl_gradient": tokens(divergence::kl_gradient),
        "kl_exact": vocabulary(divergence::kl_exact),
        "kl_exact_gradient": vocabulary(divergence::kl_exact_gradient),

        "place_scores": tokens(reward::place_scores),
        "shape_rewards": tokens(reward::shape_rewards),
        "kl_in_reward": tokens(reward::kl_in_reward),
        "overlong_penalty": tokens(reward::overlong_penalty),

        "discounted_returns": tokens(advantage::discounted_returns),
        "gae": tokens(advantage::gae),
        "monte_carlo_advantage": tokens(advantage::monte_carlo_advantage),
        "uniform_credit": tokens(advantage::uniform_credit),
        "last_k_credit": tokens(advantage::last_k_credit),
        "attention_credit": tokens(advantage::attention_credit),
        "group_relative": tokens(advantage::group_relative),
        "leave_one_out": tokens(advantage::leave_one_out),
        "broadcast": tokens(advantage::broadcast),
        "sequence_sums": tokens(advantage::sequence_sums),
        "whiten": tokens(advantage::whiten),

        "aggregate": tokens(loss::aggregate),
        "group_tokens": tokens(loss::group_tokens),
        "entropy_bonus": tokens(loss::entropy_bonus),
        "surrogate": tokens(loss::surrogate),
        "ppo_clip": tokens(loss::ppo_clip),
        "value_loss": tokens(loss::value_loss),

        "mean": tokens(metric::mean),
        "variance": tokens(metric::variance),
        "correlation": tokens(metric::correlation),
        "explained_variance": tokens(metric::explained_variance),
        "analysis": tokens(metric::analysis),
        "kl_means": tokens(metric::kl_means),
        "clip_fractions": tokens(metric::clip_fractions),
    }
}
