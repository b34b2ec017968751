//! **Stage 7 of 7 — control.** Reads the metrics of one step, returns the coefficients of the next: small state
//! machines.
//!
//! A machine is created from its config and can be resumed from its state, elsewhere and later, with the same bits from
//! then on. With the feature `serde`, states and machines can be serialised like configs.

mod budget;
mod dual_game;
mod entropy_budget;
mod kl;
mod kl_control;
mod linear_kl;
mod measure;
mod report;
mod schedule;
mod window;

pub use budget::{BudgetObservation, BudgetReport, BudgetSource, CollapseGuard, EntropyBudgetConfig};
pub use dual_game::{
    dual_game_scratch_len, DualGame, DualGameDistribution, DualGameRules, DualGameState, DualGameStep,
};
pub use entropy_budget::{EntropyBudget, EntropyBudgetState};
pub use kl::{AdaptiveKl, AdaptiveKlConfig, FixedKl};
pub use kl_control::{KlControl, KlControlConfig};
pub use linear_kl::{LinearKl, LinearKlConfig, LinearKlState};
pub use report::{DualGameReport, TokenQuantiles};
pub use schedule::{BudgetSchedule, ScheduleState};
pub use window::{Follow, Window};

/// The deserialised parts of a machine, before they are checked.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Parts<C, S> {
    config: C,
    state: S,
}
