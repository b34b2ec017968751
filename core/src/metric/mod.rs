//! **Stage 6 of 7 — metric.** Reads what the other stages wrote, gives the numbers a trainer logs.

mod analysis;
mod effective_sample_size;
mod explained_variance;
mod histogram;
mod mean;
mod quantile;
mod ratio;
mod rows;
mod running;
mod variance_proxy;

pub use analysis::{analysis, Analysis, AnalysisInput};
pub use effective_sample_size::effective_sample_size;
pub use explained_variance::{explained_variance, ExplainedVarianceConfig, ExplainedVarianceInput};
pub use histogram::Histogram;
pub use mean::{correlation, mean, variance, PairInput};
pub use quantile::quantile;
pub use ratio::{clip_fractions, kl_means, ClipConfig, ClipFractions, KlMeans, RatioInput};
pub use rows::{row_means, row_normalize, row_sums};
pub use running::RunningMoments;
pub use variance_proxy::{variance_proxy, VarianceProxy, VarianceProxyInput};

pub use crate::statistics::{CoMoments, Divisor, Moments, Spread};
