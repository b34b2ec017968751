//! **Stage 6 of 7 — metric.** Reads what the other stages wrote, returns the numbers a trainer logs.

mod analysis;
mod effective_sample_size;
mod explained_variance;
mod histogram;
mod mean;
mod quantile;
mod ratio;
mod rows;
mod running;
mod set;
mod variance_proxy;

pub use analysis::{analysis, Analysis, AnalysisInput};
pub(crate) use analysis::{analysis_rows, entropies};
pub use effective_sample_size::effective_sample_size;
pub(crate) use explained_variance::explained_by;
pub use explained_variance::{explained_variance, ExplainedVarianceConfig, ExplainedVarianceInput};
pub use histogram::Histogram;
pub use mean::{correlation, mean, variance, VarianceConfig};
pub use quantile::{quantile, QuantileConfig};
pub use ratio::{clip_fractions, kl_means, ClipConfig, ClipFractions, KlMeans, RatioInput};
pub(crate) use ratio::{held_of_row, held_token, kl_of_rows};
pub use rows::{row_means, row_normalize, RowNormalizeConfig};
pub use running::RunningMoments;
pub(crate) use set::{
    check_openrlhf, check_trl, check_verl, clipped_ratios, deviation, deviations_of_prompts, group_moments, is_flat,
    kl_and_difference, reward_of, span, trl_row, Numbers, TrlRow,
};
pub use set::{
    openrlhf_metrics, openrlhf_scratch_len, trl_metrics, trl_scratch_len, verl_metrics, ClipRatios, CompletionLengths,
    KlUse, LengthSummary, Lengths, OpenRlhfConfig, OpenRlhfInput, OpenRlhfMetrics, Reduction, RewardKl, RewardSource,
    SamplingMetrics, Summary, TrlConfig, TrlInput, TrlLevel, TrlLoss, TrlMetrics, TrlOutput, TrlRewardMetrics,
    TrlRewards, TrlScale, VerlConfig, VerlInput, VerlMetrics,
};
pub(crate) use variance_proxy::proxy_row;
pub use variance_proxy::{variance_proxy, VarianceProxy, VarianceProxyConfig, VarianceProxyInput};
