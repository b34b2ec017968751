//! **Stage 7 of 7 — control.** Reads what the metrics say of one step, gives the coefficients of the next: small state machines.
//!
//! A machine is made from its config and can be taken up again from its state, somewhere else and later, with the same bits from
//! there on. With the feature `serde` configs, states and machines can be written and read; a text format must then keep every bit of
//! a number (`serde_json` does with its feature `float_roundtrip`).

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
pub use dual_game::{DualGame, DualGameDistribution, DualGameRules, DualGameState, DualGameStep};
pub use entropy_budget::{EntropyBudget, EntropyBudgetState};
pub use kl::{AdaptiveKl, AdaptiveKlConfig, FixedKl};
pub use kl_control::{KlControl, KlControlConfig};
pub use linear_kl::{LinearKl, LinearKlConfig, LinearKlState};
pub use report::{DualGameReport, TokenQuantiles};
pub use schedule::{BudgetSchedule, ScheduleState};
pub use window::{Follow, Window};

/// What a machine is read from, before it is checked.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Parts<C, S> {
    config: C,
    state: S,
}
