//! The conventions of verl, TRL and OpenRLHF at a version, as values of the config types; and the comparison of two of
//! them on a batch.
//!
//! A trainer written against one of them takes its configs from here and changes only the numbers it has chosen itself:
//!
//! ```
//! use tokenwise::{advantage::GaeConfig, Profile};
//!
//! let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Profile::OpenRlhf0_11.gae() };
//! ```
//!
//! [`Conventions`] holds everything they differ on, one field each; a [`Profile`] is a name for one value of it.
//! [`compare()`] runs a batch through two of them and names, for each number that comes out differently, the
//! conventions that cause it.

mod chain;
mod compare;
mod configs;
mod conventions;
mod difference;
pub(crate) mod named;
mod quantity;
mod results;
#[cfg(test)]
mod tests;

pub use chain::{Estimator, ProfileInput};
pub use compare::{compare, compare_scratch_len, CompareConfig, CompareScratch, CompareSizes};
pub use conventions::{Convention, Conventions, DualClipSigns, Empty, ScoreSlots};
pub use difference::{Cause, Difference};
pub use quantity::{Quantity, QuantityShape};

use named::Profile;
