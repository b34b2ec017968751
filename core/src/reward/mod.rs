//! **Stage 3 of 7 — reward.** Reads scores and KL, writes token rewards.

mod overlong;
mod shape;

pub use overlong::{overlong_penalty, OverlongConfig, OverlongFloor, OverlongInput};
pub use shape::{kl_in_reward, place_scores, shape_rewards, KlInRewardInput, KlRewardConfig, ShapeInput};
