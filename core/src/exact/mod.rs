//! Statistics over any number of machines: states that merge without rounding.
//!
//! A state holds its sums as integers ([`ExactSum`] says how), so that nothing is rounded before the end, and the end
//! rounds once. The same numbers therefore give the same bytes however they were split over micro-batches, threads,
//! ranks or files, even in the middle of a sequence, and in whatever order the parts were merged.
//!
//! ```
//! use tokenwise::{advantage::WhitenConfig, exact::*, Batch, Layout, Mask};
//!
//! // two ranks with their parts of a batch
//! let keep = [true; 3];
//! let (first, second) = ([1.0_f32, 2.0, 4.0], [1e30, -1e30, 8.0]);
//! let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&keep))?;
//! let mut here = ExactMoments::default();
//! here.update(&batch, &first)?;
//! let mut there = ExactMoments::default();
//! there.update(&batch, &second)?;
//!
//! // an all-reduce sum of the limbs is a merge
//! here.merge(&there);
//! assert_eq!(here.moments().mean, 2.5);
//! let mut whitened = [0.0; 3];
//! here.whiten(&batch, &first, &WhitenConfig::default(), &mut whitened)?;
//! # Ok::<(), tokenwise::Error>(())
//! ```
//!
//! Nothing here sends anything: [`Partial::limbs`] are summed by any collective operation over `i64`, and
//! [`Partial::peaks`], if a state has some, are merged by their maximum.

mod analysis;
mod block;
mod kl_cov;
mod limbs;
mod moments;
mod natural;
mod partial;
mod ratio;
mod selection;
mod sum;
#[cfg(test)]
mod tests;
mod verl;

pub use analysis::ExactAnalysis;
pub use block::ExactBlock;
pub use kl_cov::KlCov;
pub use moments::{ExactCoMoments, ExactMoments};
pub use partial::Partial;
pub use ratio::{ExactClip, ExactKl};
pub use selection::{KeyBits, Selection};
pub use sum::ExactSum;
pub use verl::ExactVerl;
