//! **Stage 7 of 7 — control.** Reads what the metrics say of one step, gives the coefficients of the next: small state machines.

mod kl;

pub use kl::{AdaptiveKl, AdaptiveKlConfig, FixedKl};
