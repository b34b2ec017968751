//! What the formulas of tokenwise are held to: textbook versions, random batches, poison, tolerances.

pub mod formulas;
pub mod generate;
pub mod golden;
pub mod naive;
pub mod poison;
pub mod profiles;
pub mod tolerance;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
