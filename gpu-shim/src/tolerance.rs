//! How far a shader may be from the exact result.
//!
//! Shaders do not promise bits, because drivers may fuse, reorder and flush to zero. They promise these bounds against
//! the formula evaluated in `f64` on the same `f32` inputs:
//!
//! ```text
//! |got − exact| ≤ absolute + relative · scale
//! ```
//!
//! | number | scale |
//! | --- | --- |
//! | log-probability | the largest finite \|z\| of the row |
//! | entropy | the entropy |
//! | sums over sequences, moments | the sum of the magnitudes |
//! | token-wise formulas, losses, gradients | the number itself |
//! | losses, in addition ([`SHARED`]) | the aggregated magnitudes of the tokens |
//! | advantage, return | M_t = \|r_t\| + γ \|V_{t+1}\| + \|V_t\| + γ λ M_{t+1}: the sum of the magnitudes |
//!
//! A token whose ratio is within rounding of a bound may be counted on the other side of it in a clip fraction.
//!
//! The core's `f32` log-probabilities and entropies stay within the same bounds. Its `gae` accumulates token by token,
//! so its error grows with the length; that of the scan does not.

use crate::coverage::{self, Coverage};

/// An error bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Absolute error.
    pub absolute: f64,
    /// Relative to the scale.
    pub relative: f64,
}

impl Tolerance {
    /// The largest error allowed at this scale.
    pub const fn at(&self, scale: f64) -> f64 {
        self.absolute + self.relative * scale
    }

    /// The relative part in units in the last place of an `f32`: multiples of 2⁻²³.
    pub const fn ulps(&self) -> f64 {
        self.relative / f32::EPSILON as f64
    }
}

/// Of [`Gpu::log_probs_and_entropy`](crate::Gpu::log_probs_and_entropy), log-probabilities.
pub const LOG_PROB: Tolerance = Tolerance { absolute: 4e-6, relative: 2.5e-7 };

/// Of [`Gpu::log_probs_and_entropy`](crate::Gpu::log_probs_and_entropy), entropies.
pub const ENTROPY: Tolerance = Tolerance { absolute: 2e-6, relative: 1e-6 };

/// Of [`Gpu::gae`](crate::Gpu::gae), advantages and returns.
pub const GAE: Tolerance = Tolerance { absolute: 1e-30, relative: 1e-6 };

/// Of sums, and of the moments of a batch.
pub const SUM: Tolerance = Tolerance { absolute: 1e-30, relative: 2.5e-7 };

/// Of formulas of one token, and of losses.
pub const TOKEN: Tolerance = Tolerance { absolute: 2e-6, relative: 4e-6 };

/// Of losses, in addition, relative to the aggregated magnitudes of their tokens: settings are rounded to `f32`, in the
/// same direction for all tokens, while the losses of the tokens may cancel.
pub const SHARED: f64 = 1.2e-7;

/// Of whitened returns: the error of the returns, whose terms may cancel, in units of their deviation.
pub const WHITENED: Tolerance = Tolerance { absolute: 2e-5, relative: 4e-6 };

/// Of a formula with a kernel, by its name in the catalogue; [`TOKEN`] if it has none.
pub fn of(formula: &str) -> Tolerance {
    match coverage::coverage(formula) {
        Coverage::Kernel(runner) => runner.tolerance,
        Coverage::Core(_) => TOKEN,
    }
}

/// Every formula with a kernel, in the order of the catalogue, and how far its results may be from those of the core in
/// `f64`.
pub fn table() -> impl Iterator<Item = (&'static str, Tolerance)> {
    coverage::table().filter(|(_, why)| why.is_none()).map(|(formula, _)| (formula, of(formula)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_covered_formula_has_a_small_tolerance() {
        assert!(table().count() >= 60);
        for (formula, tolerance) in table() {
            assert!(tolerance.ulps() <= 34.0 && tolerance.absolute <= 2e-5, "{formula}: {tolerance:?}");
        }
        assert_eq!(SUM.ulps().round(), 2.0);
    }
}
