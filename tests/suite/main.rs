//! The tests of all formulas, as one binary. `case.rs` says how a formula is added.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests: a failure is a panic, and the textbook's own functions are wanted"
)]

mod advantage;
mod baselines;
mod case;
mod control;
mod coverage;
mod distill;
mod divergence;
mod dual_game;
mod errors;
mod golden;
mod groups;
mod layout;
mod loss;
mod metric;
mod naive;
mod numbers;
mod policy;
mod profiles;
mod properties;
mod returns;
mod reward;
mod rollout;
mod rows;
mod set_keys;
mod sets;
mod shaping;
mod spelling;
mod textbook;
mod traps;
