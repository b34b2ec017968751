//! The table: one row a function.

mod tokens;
mod totals;

use tokenwise::Error;

use super::Function;
use tokens::*;
use totals::*;

const EMPTY: Option<Error> = Some(Error::EmptyMask);

const fn too_few(what: &'static str, got: usize) -> Option<Error> {
    Some(Error::TooFew { what, needed: 2, got })
}

/// A function that takes any mask.
const fn any(name: &'static str, run: fn(&mut super::Call) -> super::Ended) -> Function {
    Function { name, run, all_dropped: None, one_kept: None }
}

/// A function that needs a kept token.
const fn needs_one(name: &'static str, run: fn(&mut super::Call) -> super::Ended) -> Function {
    Function { name, run, all_dropped: EMPTY, one_kept: None }
}

pub(crate) const FUNCTIONS: &[Function] = &[
    any("log_probs_and_entropy", log_probs_and_entropy),
    any("token_log_probs", token_log_probs),
    any("entropy", entropy),
    any("sum_squared_probs", sum_squared_probs),
    any("logits_gradient", logits_gradient),
    any("kl_estimate", kl_estimate),
    any("kl_gradient", kl_gradient),
    any("kl_exact", kl_exact),
    any("kl_exact_gradient", kl_exact_gradient),
    any("place_scores", place_scores),
    any("shape_rewards", shape_rewards),
    any("kl_in_reward", kl_in_reward),
    any("overlong_penalty", overlong_penalty),
    any("discounted_returns", discounted_returns),
    any("gae", gae),
    any("monte_carlo_advantage", monte_carlo_advantage),
    any("uniform_credit", uniform_credit),
    any("last_k_credit", last_k_credit),
    any("attention_credit", attention_credit),
    any("group_relative", group_relative),
    any("leave_one_out", leave_one_out),
    any("broadcast", broadcast),
    any("sequence_sums", sequence_sums),
    Function { name: "whiten", run: whiten, all_dropped: EMPTY, one_kept: too_few("variance", 1) },
    needs_one("aggregate", aggregate),
    any("group_tokens", group_tokens),
    needs_one("surrogate", surrogate),
    needs_one("ppo_clip", ppo_clip),
    needs_one("value_loss", value_loss),
    needs_one("entropy_bonus", entropy_bonus),
    needs_one("mean", mean),
    Function { name: "variance", run: variance, all_dropped: EMPTY, one_kept: too_few("variance", 1) },
    Function {
        name: "correlation",
        run: correlation,
        all_dropped: too_few("correlation", 0),
        one_kept: too_few("correlation", 1),
    },
    Function {
        name: "explained_variance",
        run: explained_variance,
        all_dropped: EMPTY,
        one_kept: too_few("explained_variance", 1),
    },
    needs_one("kl_means", kl_means),
    needs_one("clip_fractions", clip_fractions),
    needs_one("analysis", analysis),
    any("shift", shift),
    any("Moments::of", moments),
    any("CoMoments::of", co_moments),
];
