//! **Before stage 5 — rollout.** Reads the log-probabilities of the trainer and of the sampler that produced the tokens, writes
//! importance weights and masks: what is left to correct when the two engines disagree. Also what drops or redraws whole samples.

mod config;
mod entropy_mask;
mod filter;
mod gate;
mod mask;
mod mismatch;
mod parse;
mod probability;
mod rejection;
mod rejection_metrics;
mod resample;
mod response_mask;
#[cfg(test)]
mod tests;
mod veto;
mod weight_metrics;
mod weights;

pub use config::{
    BatchNormalize, LogBound, RolloutConfig, RolloutInput, RolloutLevel, SamplerMode, Unscored, WeightBound,
};
pub use entropy_mask::high_entropy_mask;
pub use filter::{dynamic_sampling_filter, GroupRule};
pub use gate::{rollout_gate, GateConfig, GateLevel, GateMode, GateReport, GateStatistic};
pub use mask::{kl_mask, m2po_mask, off_policy_sequence_mask, OffPolicyConfig, OffPolicyInput};
pub use mismatch::{rollout_mismatch, RolloutMismatch};
pub use parse::{parse_rejection, parse_weight_bound};
#[cfg(feature = "small")]
#[doc(hidden)]
pub use parse::{parse_rejection_by, parse_weight_bound_by};
pub use probability::{probability_difference, ProbabilityDifference};
pub use rejection::{rollout_rejection, Criterion, RejectionConfig, RejectionOption};
pub use rejection_metrics::{rollout_rejection_metrics, CriterionMetrics, RejectionTotals};
pub use resample::{pf_ppo_indices, pf_ppo_weights, PfPpoRule};
pub use response_mask::response_mask_from_eos;
pub use veto::{sequence_veto, VetoConfig};
pub use weight_metrics::{rollout_weight_metrics, RolloutWeightMetrics};
pub use weights::rollout_weights;

/// The smallest and the largest of some numbers; NaN once one of them is.
#[derive(Clone, Copy)]
pub(crate) struct Extremes {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Extremes {
    pub(crate) const NONE: Self = Self { min: f64::INFINITY, max: f64::NEG_INFINITY };

    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        // a comparison with NaN is false: the first NaN enters by the second test and stays
        if x < self.min || x.is_nan() {
            self.min = x;
        }
        if x > self.max || x.is_nan() {
            self.max = x;
        }
    }
}

/// 1 for yes, 0 for no.
#[cfg_attr(not(compact), inline(always))]
pub(crate) fn count(yes: bool) -> f64 {
    if yes {
        1.0
    } else {
        0.0
    }
}

pub(crate) use crate::math::clamp;

/// The fixture of the catalogue, §16: what verl 0.9.1 was run on.
#[cfg(test)]
pub(crate) mod fixture {
    use crate::{Batch, Layout, Mask};

    pub(crate) const KEEP: [bool; 20] = [
        true, true, true, true, false, //
        true, true, false, true, true, //
        true, true, false, false, false, //
        true, true, true, true, true,
    ];
    const NAN: f64 = f64::NAN;
    pub(crate) const OLD: [f64; 20] = [
        -0.5, -1.0, -0.2, -0.7, NAN, //
        -0.3, -2.0, NAN, -0.6, -0.9, //
        -1.2, -0.1, NAN, NAN, NAN, //
        -0.4, -0.8, -1.5, -0.05, -0.25,
    ];
    pub(crate) const SAMPLER: [f64; 20] = [
        -0.52, -1.1, -0.25, -0.65, NAN, //
        -0.35, -1.9, NAN, -0.7, -0.8, //
        -1.1, -0.12, NAN, NAN, NAN, //
        -0.42, -0.75, -1.9, -0.05, -0.3,
    ];

    pub(crate) fn batch() -> Batch<'static> {
        Batch::new(Layout::padded(4, 5).unwrap(), Mask::new(&KEEP)).unwrap()
    }

    pub(crate) fn input() -> super::RolloutInput<'static, f64> {
        super::RolloutInput { old_log_probs: &OLD, rollout_log_probs: &SAMPLER }
    }

    /// The numbers of the catalogue have six digits and come from single precision.
    #[track_caller]
    pub(crate) fn near(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1.5e-6 * expected.abs().max(1.0), "got {got}, expected {expected}");
    }
}
