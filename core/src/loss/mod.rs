//! **Stage 5 of 7 — loss.** Reads log-probabilities, advantages and returns, writes one loss and its gradient.

mod aggregate;
mod entropy_bonus;
mod ppo_clip;
mod surrogate;
mod value;

pub use aggregate::{aggregate, group_tokens, Aggregate, AggregateMode, Counts, EmptyRows, GlobalCounts};
pub use entropy_bonus::{entropy_bonus, EntropyBonusConfig};
pub(crate) use ppo_clip::Clip;
pub use ppo_clip::{ppo_clip, DualClip, PpoConfig, PpoLoss, ReportedKl};
pub use surrogate::{surrogate, PolicyLossInput, SurrogateConfig};
pub use value::{value_loss, ValueConfig, ValueFactor, ValueLoss, ValueLossInput};
