//! **Stage 6 of 7 — metric.** Reads what the other stages wrote, gives the numbers a trainer logs.

mod analysis;
mod explained_variance;
mod mean;
mod ratio;

pub use analysis::{analysis, Analysis, AnalysisInput};
pub use explained_variance::{explained_variance, ExplainedVarianceConfig, ExplainedVarianceInput};
pub use mean::{correlation, mean, variance, PairInput};
pub use ratio::{clip_fractions, kl_means, ClipConfig, ClipFractions, KlMeans, RatioInput};

pub use crate::statistics::{CoMoments, Divisor, Moments, Spread};
