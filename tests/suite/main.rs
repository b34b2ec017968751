//! The tests of all formulas, as one binary. `case.rs` says how a formula is added.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests: a failure is a panic, and the textbook's own functions are wanted"
)]

mod advantage;
mod case;
mod coverage;
mod divergence;
mod errors;
mod golden;
mod layout;
mod loss;
mod metric;
mod numbers;
mod policy;
mod properties;
mod reward;
mod textbook;
