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

pub use openrlhf::{openrlhf_metrics, openrlhf_scratch_len, KlUse, OpenRlhfConfig, OpenRlhfInput};
pub use openrlhf_keys::OpenRlhfMetrics;
pub use reduction::Reduction;
pub use summary::{Lengths, Summary};
pub use trl::{trl_metrics, trl_scratch_len, TrlConfig, TrlInput, TrlLevel, TrlLoss, TrlOutput, TrlRewards, TrlScale};
pub use trl_keys::{ClipRatios, CompletionLengths, RewardSource, SamplingMetrics, TrlMetrics, TrlRewardMetrics};
pub(crate) use verl::check_verl;
pub use verl::{verl_metrics, VerlConfig, VerlInput};
pub use verl_keys::{LengthSummary, RewardKl, VerlMetrics};
