//! **Before stage 5 — rollout.** Reads the log-probabilities of the trainer and of the sampler that produced the
//! tokens, writes importance weights and masks that correct for the difference between the two engines. Also filters
//! and resampling of whole samples.

mod config;
mod entropy_mask;
mod filter;
#[cfg(test)]
mod fixture;
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
pub use entropy_mask::{high_entropy_mask, HighEntropyConfig};
pub use filter::{dynamic_sampling_filter, GroupRule};
pub use gate::{rollout_gate, GateConfig, GateLevel, GateMode, GateReport, GateStatistic};
pub(crate) use mask::square;
pub use mask::{
    kl_mask, m2po_mask, m2po_scratch_len, off_policy_sequence_mask, KlMaskConfig, M2poConfig, OffPolicyConfig,
    OffPolicyInput,
};
pub(crate) use mismatch::mismatch_of_row;
pub use mismatch::{rollout_mismatch, RolloutMismatch};
pub use parse::{parse_rejection, parse_weight_bound};
pub use probability::{probability_difference, ProbabilityDifference};
pub use rejection::{rollout_rejection, Criterion, RejectionConfig, RejectionOption};
pub(crate) use rejection_metrics::{criterion_row, dropped, CriterionRow, CriterionTotals};
pub use rejection_metrics::{rollout_rejection_metrics, CriterionMetrics, RejectionTotals};
pub use resample::{pf_ppo_indices, pf_ppo_scratch_len, pf_ppo_weights, PfPpoRule, ResampleConfig};
pub use response_mask::{response_mask_from_eos, EosInput};
pub use veto::{sequence_veto, VetoConfig};
pub(crate) use weight_metrics::{deviation_from_one, weight_row, Band, WeightRow, WeightTotals};
pub use weight_metrics::{rollout_weight_metrics, RolloutWeightMetrics};
pub(crate) use weights::divide;
pub use weights::rollout_weights;
