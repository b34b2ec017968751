//! What the formulas of tokenwise are tested with: golden cases, random batches, poison, tolerances.

#[cfg(feature = "random")]
pub mod generate;
pub mod golden;
#[cfg(feature = "random")]
pub mod poison;
pub mod profiles;
#[cfg(feature = "random")]
pub mod tolerance;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The examples of the guide for trainer authors, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
pub struct Embedding;
