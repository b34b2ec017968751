//! Statistics over any number of machines: states that merge without rounding.
//!
//! Every sequence is summed as in the plain functions, in vectors; what is added to a state is what the sequence came
//! to. A state holds its sums as integers ([`ExactSum`] says how), so that this addition rounds nothing, and the end
//! rounds once. The same sequences therefore give the same bytes however they were split over micro-batches, threads,
//! ranks or files, and in whatever order the parts were merged. Results are correctly rounded from the sums of the
//! sequences; the variance is within a few units of 2⁻⁵² of itself, also where the mean is far above the spread.
//!
//! If sequences themselves are cut and spread over ranks, use `update_by_number` ([`ExactSum`], [`ExactMoments`],
//! [`ExactCoMoments`]). It adds every number by itself, without rounding, so that any split gives the same bytes, and
//! takes ten times as long or more. One state may hold both, but the two ways differ by rounding: a sequence has to be
//! added in the same way everywhere.
//!
//! ```
//! use tokenwise::{advantage::WhitenConfig, exact::*, Batch, Layout, Mask};
//!
//! // two ranks with their parts of a batch
//! let keep = [true; 3];
//! let (first, second) = ([1.0_f32, 2.0, 4.0], [3.0, -3.0, 8.0]);
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

mod aggregated;
mod analysis;
mod clip_cov;
mod kl_cov;
mod limbs;
mod m2po;
mod moments;
mod natural;
mod openrlhf;
mod partial;
mod ratio;
mod rollout;
mod row;
mod selection;
mod sum;
#[cfg(test)]
mod tests;
mod trl;
mod variance_proxy;
mod verl;

pub use analysis::ExactAnalysis;
pub use clip_cov::ClipCov;
pub use kl_cov::KlCov;
pub use m2po::M2po;
pub use moments::{ExactCoMoments, ExactMoments};
pub use openrlhf::ExactOpenRlhf;
pub use partial::Partial;
pub use ratio::{ExactClip, ExactKl};
pub use rollout::{ExactCriterion, ExactRejection, ExactRolloutWeights};
pub use selection::{KeyBits, Selection};
pub use sum::ExactSum;
pub use trl::ExactTrl;
pub use variance_proxy::ExactVarianceProxy;
pub use verl::ExactVerl;
