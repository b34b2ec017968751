//! **Stage 2 of 7 — divergence.** Reads the log-probabilities (or logits) of policy and reference, writes how far apart
//! they are.

mod kl_estimate;
mod kl_exact;
mod kl_weighted;

pub(crate) use kl_estimate::{by_estimator, gradient_of as kl_slope, value_of as kl_value, Kl};
pub use kl_estimate::{kl_estimate, kl_gradient, KlBounds, KlConfig, KlEstimator, KlGradient, KlInput};
pub use kl_exact::{kl_exact, kl_exact_gradient, KlExactGradientInput, KlExactInput};
pub use kl_weighted::{
    kl_importance_weighted, kl_importance_weighted_gradient, KlWeight, KlWeightedConfig, KlWeightedGradientInput,
    KlWeightedInput,
};
