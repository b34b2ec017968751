//! How far a shader may be from the exact result.
//!
//! Shaders do not promise bits: drivers may fuse, reorder and flush. They promise this table instead, against the formula
//! evaluated in `f64` on the same `f32` inputs:
//!
//! ```text
//! |got − exact| ≤ absolute + relative · scale
//! ```
//!
//! | number | scale |
//! | --- | --- |
//! | log-probability | the largest finite \|z\| of the row |
//! | entropy | the entropy |
//! | advantage, return | M_t = \|r_t\| + γ \|V_{t+1}\| + \|V_t\| + γ λ M_{t+1}: what is added up, without its signs |
//!
//! The core's own `f32` results keep the same promise for log-probability and entropy. Its `gae` adds one token after the
//! other and so drifts with the length, where the scan does not.

/// A bound on the error of one number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Allowed for any number.
    pub absolute: f64,
    /// Allowed per unit of the scale.
    pub relative: f64,
}

impl Tolerance {
    /// The largest error allowed at this scale.
    pub const fn at(&self, scale: f64) -> f64 {
        self.absolute + self.relative * scale
    }
}

/// Of [`Gpu::log_probs_and_entropy`](crate::Gpu::log_probs_and_entropy), log-probabilities.
pub const LOG_PROB: Tolerance = Tolerance { absolute: 4e-6, relative: 2.5e-7 };

/// Of [`Gpu::log_probs_and_entropy`](crate::Gpu::log_probs_and_entropy), entropies.
pub const ENTROPY: Tolerance = Tolerance { absolute: 2e-6, relative: 1e-6 };

/// Of [`Gpu::gae`](crate::Gpu::gae), advantages and returns.
pub const GAE: Tolerance = Tolerance { absolute: 1e-30, relative: 1e-6 };
