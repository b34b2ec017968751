//! Which formulas of the catalogue have a kernel, and why the others have none.

use std::fmt;

use crate::{
    advantage,
    call::{self, Runner},
    credit, divergence, group, kl_weighted, loss, metric, reward, rollout, trace, weight,
};

/// Whether a formula runs on the device.
#[derive(Clone, Copy)]
pub(crate) enum Coverage {
    /// It has a kernel.
    Kernel(&'static Runner),
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

/// The formulas with a kernel, by the modules that have them.
const KERNELS: &[&[Runner]] = &[
    call::RUNNERS,
    divergence::RUNNERS,
    kl_weighted::RUNNERS,
    reward::RUNNERS,
    advantage::RUNNERS,
    credit::RUNNERS,
    trace::RUNNERS,
    group::RUNNERS,
    rollout::weights::RUNNERS,
    rollout::mismatch::RUNNERS,
    rollout::rejection::RUNNERS,
    rollout::masks::RUNNERS,
    weight::RUNNERS,
    loss::policy::RUNNERS,
    loss::sequences::RUNNERS,
    loss::game::RUNNERS,
    loss::scores::RUNNERS,
    loss::tokens::RUNNERS,
    loss::distill::RUNNERS,
    metric::RUNNERS,
];

/// The formulas without a kernel.
const WITHOUT: &[(&str, NoKernel)] = &[
    ("shift", COPY),
    ("topk_log_probs", TOP_K),
    ("topk_logits_gradient", TOP_K),
    ("kl_exact", TWO_ROWS),
    ("kl_exact_gradient", TWO_ROWS),
    ("overlong_penalty", SEQUENCES),
    ("stop_properly_penalty", SEQUENCES),
    ("missing_eos_penalty", SEQUENCES),
    ("reward_scale_clip", SEQUENCES),
    ("repetition_penalty", LOOKUP),
    ("length_penalty_group", SEQUENCES),
    ("n_step_returns", WINDOW),
    ("leave_one_out_scaled", CANCELS),
    ("normalize_scores", SEQUENCES),
    ("best_of_group", SEQUENCES),
    ("decoupled_scores", SEQUENCES),
    ("optimal_token_baseline", POSITIONS),
    ("tir_optimal_token_baseline", POSITIONS),
    ("m2po_mask", ORDER),
    ("high_entropy_mask", ORDER),
    ("dynamic_sampling_filter", SEQUENCES),
    ("pf_ppo_weights", SEQUENCES),
    ("pf_ppo_indices", DRAWS),
    ("response_mask_from_eos", INTEGERS),
    ("structural_weights", LOOKUP),
    ("trie_complexity", LOOKUP),
    ("kl_cov", ORDER),
    ("clip_cov_selection", ORDER),
    ("group_tokens", SEQUENCES),
    ("forward_kl_topk", TWO_ROWS),
    ("topk_jsd", TWO_ROWS),
    ("mixed_kl_topk", TWO_ROWS),
    ("generalized_jsd", TWO_ROWS),
    ("bypass_loss", REJECTS),
    ("quantile", ORDER),
    ("verl_metrics", REPORT),
    ("trl_metrics", REPORT),
    ("openrlhf_metrics", REPORT),
];

/// The coverage of a formula.
pub(crate) fn coverage(name: &str) -> Coverage {
    let kernel = KERNELS.iter().copied().flatten().find(|runner| runner.name == name);
    let reason = || WITHOUT.iter().find(|(known, _)| *known == name).map_or(NOT_LISTED, |&(_, reason)| reason);
    kernel.map_or_else(|| Core(reason()), Kernel)
}

/// Every formula of the catalogue with `None` if it has a kernel, otherwise with the reason for none.
pub fn table() -> impl Iterator<Item = (&'static str, Option<NoKernel>)> {
    tokenwise_catalogue::entries().map(|entry| match coverage(entry.name) {
        Kernel(_) => (entry.name, None),
        Core(reason) => (entry.name, Some(reason)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel is the row of its module, a reason one of `WITHOUT`.
    #[test]
    fn every_formula_has_a_kernel_or_a_reason() {
        let kernels = KERNELS.iter().copied().flatten().map(|runner| runner.name);
        let mut known: Vec<_> = kernels.chain(WITHOUT.iter().map(|(name, _)| *name)).collect();
        let mut entries: Vec<_> = tokenwise_catalogue::entries().map(|entry| entry.name).collect();
        known.sort_unstable();
        entries.sort_unstable();
        assert_eq!(known, entries);
    }
}
