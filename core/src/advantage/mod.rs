//! **Stage 4 of 7 — advantage.** Reads rewards and values, writes advantages and returns.

mod credit;
mod gae;
mod group;
mod returns;
mod whiten;

pub use credit::{
    attention_credit, last_k_credit, monte_carlo_advantage, uniform_credit, AttentionInput, MonteCarloInput,
    MonteCarloOutput,
};
#[doc(hidden)]
pub use gae::{check_gae, sequence_starts};
pub use gae::{gae, GaeConfig, GaeInput, GaeOutput};
pub use group::{
    broadcast, group_relative, leave_one_out, sequence_sums, GroupConfig, GroupScale, LeaveOneOutConfig, Singleton,
};
pub use returns::{discounted_returns, Across, ReturnsConfig, ReturnsInput};
pub use whiten::{whiten, Center, EpsilonPlace, Scale, WhitenConfig};
