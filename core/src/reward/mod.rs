//! **Stage 3 of 7 — reward.** Reads scores and KL, writes token rewards.

mod overlong;
mod repetition;
mod sequence_kl;
mod shape;
mod truncated;

pub use overlong::{overlong_penalty, OverlongConfig, OverlongFloor, OverlongInput};
pub use repetition::{length_penalty_group, repetition_penalty, GroupLengthConfig, GroupLengthInput, RepetitionConfig};
pub use sequence_kl::{
    clipped_rewards, kl_in_scores, ClippedRewardsConfig, ClippedRewardsInput, KlInScoresConfig, KlInScoresInput,
};
#[doc(hidden)]
pub use shape::check_shape_config;
pub use shape::{kl_in_reward, place_scores, shape_rewards, KlInRewardInput, KlRewardConfig, ShapeConfig, ShapeInput};
pub use truncated::{
    missing_eos_penalty, reward_scale_clip, stop_properly_penalty, MissingEosConfig, MissingEosInput,
    RewardScaleConfig, StopProperlyConfig, TruncatedInput,
};
