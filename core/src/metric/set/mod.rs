//! Everything a trainer logs for a batch, under the keys of the frameworks.

mod openrlhf;
mod openrlhf_keys;
mod reduction;
mod summary;
mod trl;
mod trl_keys;
mod trl_rewards;
mod trl_walk;
mod verl;
mod verl_keys;
mod verl_walk;

pub(crate) use openrlhf::{check_openrlhf, deviations_of_prompts, kl_and_difference, span};
pub use openrlhf::{openrlhf_metrics, openrlhf_scratch_len, KlUse, OpenRlhfConfig, OpenRlhfInput};
pub use openrlhf_keys::OpenRlhfMetrics;
pub use reduction::Reduction;
pub use summary::{Lengths, Summary};
pub(crate) use trl::check_trl;
pub use trl::{trl_metrics, trl_scratch_len, TrlConfig, TrlInput, TrlLevel, TrlLoss, TrlOutput, TrlRewards, TrlScale};
pub use trl_keys::{ClipRatios, CompletionLengths, RewardSource, SamplingMetrics, TrlMetrics, TrlRewardMetrics};
pub(crate) use trl_rewards::{deviation, group_moments, is_flat, reward_of};
pub(crate) use trl_walk::{clipped_ratios, trl_row, Numbers, TrlRow};
pub(crate) use verl::check_verl;
pub use verl::{verl_metrics, VerlConfig, VerlInput};
pub use verl_keys::{LengthSummary, RewardKl, VerlMetrics};
