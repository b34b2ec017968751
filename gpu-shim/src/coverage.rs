//! Which formulas of the catalogue have a kernel, and why the others have none.

use std::fmt;

use crate::{
    call::{self, Runner},
    kl_weighted, loss,
};

/// Whether a formula runs on the device.
#[derive(Clone, Copy)]
pub(crate) enum Coverage {
    /// It has a kernel.
    Kernel(Runner),
    /// The core computes it; the reason.
    Core(NoKernel),
}

/// Why a formula has no kernel.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoKernel {
    /// A short stable name, for programs.
    pub code: &'static str,
    /// The reason in words.
    pub reason: &'static str,
}

impl fmt::Display for NoKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

use Coverage::{Core, Kernel};

const ORDER: NoKernel = NoKernel { code: "sorts", reason: "needs all tokens sorted, which no thread knows alone" };
const SEQUENCES: NoKernel =
    NoKernel { code: "per_sequence", reason: "one number per sequence: too little work for a device" };
const DRAWS: NoKernel = NoKernel { code: "draws", reason: "each draw depends on the one before" };
const COPY: NoKernel = NoKernel { code: "copies", reason: "copies rows and computes nothing" };
const LOOKUP: NoKernel =
    NoKernel { code: "looks_up", reason: "looks up n-grams or prefixes in a table that grows as it goes" };
const REJECTS: NoKernel = NoKernel {
    code: "rejects",
    reason: "rejects tokens, and the weights of the others depend on how many are left, which only the host counts",
};
const WINDOW: NoKernel = NoKernel {
    code: "window",
    reason: "sums a window of n kept tokens for each token, which no recursion of fixed size gives",
};
const CANCELS: NoKernel = NoKernel {
    code: "cancels",
    reason: "one number per sequence, from the difference of nearly equal sums of squares, which f32 loses",
};
const INTEGERS: NoKernel =
    NoKernel { code: "integers", reason: "compares integers in one pass: sending them costs more" };
const TWO_ROWS: NoKernel =
    NoKernel { code: "two_rows", reason: "compares two distributions of a row; the kernels over rows read one" };
const TOP_K: NoKernel = NoKernel {
    code: "top_k",
    reason: "picks k entries of each row; the kernels over rows give the log-probability of one",
};
const POSITIONS: NoKernel = NoKernel {
    code: "positions",
    reason: "compares the tokens of a group at equal positions, whatever the lengths of its sequences",
};
const REPORT: NoKernel = NoKernel {
    code: "report",
    reason: "a report of many formulas, with quantiles; the sums among them have kernels of their own",
};
/// A slice that is too short or too long: the core refuses the call.
pub(crate) const NO_FIT: NoKernel = NoKernel { code: "does_not_fit", reason: "an output does not fit" };
const NOT_LISTED: NoKernel = NoKernel { code: "not_listed", reason: "not a formula of the catalogue" };

/// Every formula of the catalogue, in its order.
const TABLE: &[(&str, Coverage)] = &[
    ("shift", Core(COPY)),
    ("log_probs_and_entropy", Kernel(call::log_probs_and_entropy)),
    ("token_log_probs", Kernel(call::token_log_probs)),
    ("entropy", Kernel(call::entropy)),
    ("sum_squared_probs", Kernel(call::sum_squared_probs)),
    ("topk_log_probs", Core(TOP_K)),
    ("topk_logits_gradient", Core(TOP_K)),
    ("logits_gradient", Kernel(call::logits_gradient)),
    ("kl_estimate", Kernel(call::kl_estimate)),
    ("kl_gradient", Kernel(call::kl_gradient)),
    ("kl_importance_weighted", Kernel(kl_weighted::value)),
    ("kl_importance_weighted_gradient", Kernel(kl_weighted::gradient)),
    ("kl_exact", Core(TWO_ROWS)),
    ("kl_exact_gradient", Core(TWO_ROWS)),
    ("place_scores", Kernel(call::place_scores)),
    ("shape_rewards", Kernel(call::shape_rewards)),
    ("kl_in_reward", Kernel(call::reward::kl_in_reward)),
    ("kl_in_scores", Kernel(call::reward::kl_in_scores)),
    ("clipped_rewards", Kernel(call::reward::clipped_rewards)),
    ("overlong_penalty", Core(SEQUENCES)),
    ("stop_properly_penalty", Core(SEQUENCES)),
    ("missing_eos_penalty", Core(SEQUENCES)),
    ("reward_scale_clip", Core(SEQUENCES)),
    ("repetition_penalty", Core(LOOKUP)),
    ("length_penalty_group", Core(SEQUENCES)),
    ("discounted_returns", Kernel(call::discounted_returns)),
    ("gae", Kernel(call::gae)),
    ("whiten", Kernel(call::whiten)),
    ("gae_decoupled", Kernel(call::advantage::gae_decoupled)),
    ("monte_carlo_advantage", Kernel(call::advantage::monte_carlo_advantage)),
    ("td_lambda", Kernel(call::td_lambda)),
    ("n_step_returns", Core(WINDOW)),
    ("upgo", Kernel(call::advantage::upgo)),
    ("vtrace", Kernel(call::advantage::vtrace)),
    ("retrace", Kernel(call::advantage::retrace)),
    ("puffer_advantage", Kernel(call::advantage::puffer_advantage)),
    ("remax", Kernel(call::advantage::remax)),
    ("reinforce_plus_plus", Kernel(call::advantage::reinforce_plus_plus)),
    ("opd_advantage", Kernel(call::advantage::opd_advantage)),
    ("minillm_advantage", Kernel(call::advantage::minillm_advantage)),
    ("uniform_credit", Kernel(call::advantage::uniform_credit)),
    ("last_k_credit", Kernel(call::advantage::last_k_credit)),
    ("attention_credit", Kernel(call::advantage::attention_credit)),
    ("broadcast", Kernel(call::broadcast)),
    ("sequence_sums", Kernel(call::sequence_sums)),
    ("group_relative", Kernel(call::group::group_relative)),
    ("leave_one_out", Kernel(call::leave_one_out)),
    ("leave_one_out_scaled", Core(CANCELS)),
    ("normalize_scores", Core(SEQUENCES)),
    ("gpg_advantage", Kernel(call::group::gpg_advantage)),
    ("max_rl", Kernel(call::group::max_rl)),
    ("best_of_group", Core(SEQUENCES)),
    ("length_weighted_baseline", Kernel(call::group::length_weighted_baseline)),
    ("decoupled_scores", Core(SEQUENCES)),
    ("gdpo", Kernel(call::group::gdpo)),
    ("reinforce_plus_plus_baseline", Kernel(call::group::reinforce_plus_plus_baseline)),
    ("optimal_token_baseline", Core(POSITIONS)),
    ("tir_optimal_token_baseline", Core(POSITIONS)),
    ("rollout_weights", Kernel(call::rollout::rollout_weights)),
    ("rollout_weight_metrics", Kernel(call::rollout::rollout_weight_metrics)),
    ("rollout_mismatch", Kernel(call::rollout::rollout_mismatch)),
    ("probability_difference", Kernel(call::rollout::probability_difference)),
    ("rollout_rejection", Kernel(call::rollout::rollout_rejection)),
    ("rollout_rejection_metrics", Kernel(call::rollout::rollout_rejection_metrics)),
    ("rollout_gate", Kernel(call::rollout::rollout_gate)),
    ("kl_mask", Kernel(call::rollout::kl_mask)),
    ("sequence_veto", Kernel(call::rollout::sequence_veto)),
    ("m2po_mask", Core(ORDER)),
    ("off_policy_sequence_mask", Kernel(call::rollout::off_policy_sequence_mask)),
    ("high_entropy_mask", Core(ORDER)),
    ("dynamic_sampling_filter", Core(SEQUENCES)),
    ("pf_ppo_weights", Core(SEQUENCES)),
    ("pf_ppo_indices", Core(DRAWS)),
    ("response_mask_from_eos", Core(INTEGERS)),
    ("token_weights", Kernel(call::loss::token_weights)),
    ("advantage_jump", Kernel(call::loss::advantage_jump)),
    ("structural_weights", Core(LOOKUP)),
    ("trie_complexity", Core(LOOKUP)),
    ("surrogate", Kernel(loss::policy::by_name::surrogate)),
    ("ppo_clip", Kernel(loss::policy::by_name::ppo_clip)),
    ("reinforce", Kernel(loss::policy::by_name::reinforce)),
    ("cispo", Kernel(loss::policy::by_name::cispo)),
    ("tis_loss", Kernel(loss::policy::by_name::tis_loss)),
    ("kl_cov", Core(ORDER)),
    ("dppo_tv", Kernel(loss::policy::by_name::dppo_tv)),
    ("dppo_kl", Kernel(loss::policy::by_name::dppo_kl)),
    ("dro", Kernel(loss::policy::by_name::dro)),
    ("gspo", Kernel(call::loss::gspo)),
    ("sapo", Kernel(loss::policy::by_name::sapo)),
    ("gmpo", Kernel(call::loss::gmpo)),
    ("luspo", Kernel(call::loss::luspo)),
    ("clip_cov", Kernel(call::loss::clip_cov)),
    ("clip_cov_selection", Core(ORDER)),
    ("vespo", Kernel(call::loss::vespo)),
    ("topr", Kernel(call::loss::topr)),
    ("gvpo", Kernel(call::loss::gvpo)),
    ("positive_nll", Kernel(call::loss::positive_nll)),
    ("aggregate", Kernel(call::loss::aggregate)),
    ("group_tokens", Core(SEQUENCES)),
    ("value_loss", Kernel(call::loss::value_loss)),
    ("entropy_bonus", Kernel(call::loss::entropy_bonus)),
    ("dual_game", Kernel(call::loss::dual_game)),
    ("kl_loss", Kernel(call::loss::kl_loss)),
    ("opd_loss", Kernel(call::loss::opd_loss)),
    ("ref_kl", Kernel(call::loss::ref_kl)),
    ("iw_opd", Kernel(call::loss::iw_opd)),
    ("forward_kl_topk", Core(TWO_ROWS)),
    ("topk_jsd", Core(TWO_ROWS)),
    ("mixed_kl_topk", Core(TWO_ROWS)),
    ("generalized_jsd", Core(TWO_ROWS)),
    ("bypass_loss", Core(REJECTS)),
    ("mean", Kernel(call::metric::mean)),
    ("variance", Kernel(call::metric::variance)),
    ("analysis", Kernel(call::metric::analysis)),
    ("analysis_sums", Kernel(call::metric::analysis_sums)),
    ("moments", Kernel(call::moments)),
    ("co_moments", Kernel(call::metric::co_moments)),
    ("correlation", Kernel(call::metric::correlation)),
    ("explained_variance", Kernel(call::metric::explained_variance)),
    ("kl_means", Kernel(call::metric::kl_means)),
    ("clip_fractions", Kernel(call::metric::clip_fractions)),
    ("effective_sample_size", Kernel(call::metric::effective_sample_size)),
    ("quantile", Core(ORDER)),
    ("row_means", Kernel(call::metric::row_means)),
    ("row_normalize", Kernel(call::metric::row_normalize)),
    ("variance_proxy", Kernel(call::metric::variance_proxy)),
    ("verl_metrics", Core(REPORT)),
    ("trl_metrics", Core(REPORT)),
    ("openrlhf_metrics", Core(REPORT)),
];

/// The coverage of a formula.
pub(crate) fn coverage(name: &str) -> Coverage {
    TABLE.iter().find(|(known, _)| *known == name).map_or(Core(NOT_LISTED), |&(_, coverage)| coverage)
}

/// Every formula of the catalogue with `None` if it has a kernel, otherwise with the reason for none.
pub fn table() -> impl Iterator<Item = (&'static str, Option<NoKernel>)> {
    TABLE.iter().map(|&(name, coverage)| match coverage {
        Kernel(_) => (name, None),
        Core(reason) => (name, Some(reason)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_formula_has_a_kernel_or_a_reason() {
        let known: Vec<_> = table().map(|(name, _)| name).collect();
        let entries: Vec<_> = tokenwise_catalogue::entries().map(|entry| entry.name).collect();
        assert_eq!(known, entries);
    }
}
