//! The batch of the golden numbers in the unit tests: verl 0.9.1 was run on it.

use super::RolloutInput;
use crate::{Batch, Layout, Mask};

pub(crate) const KEEP: [bool; 20] = [
    true, true, true, true, false, //
    true, true, false, true, true, //
    true, true, false, false, false, //
    true, true, true, true, true,
];
const NAN: f64 = f64::NAN;
pub(crate) const OLD: [f64; 20] = [
    -0.5, -1.0, -0.2, -0.7, NAN, //
    -0.3, -2.0, NAN, -0.6, -0.9, //
    -1.2, -0.1, NAN, NAN, NAN, //
    -0.4, -0.8, -1.5, -0.05, -0.25,
];
pub(crate) const SAMPLER: [f64; 20] = [
    -0.52, -1.1, -0.25, -0.65, NAN, //
    -0.35, -1.9, NAN, -0.7, -0.8, //
    -1.1, -0.12, NAN, NAN, NAN, //
    -0.42, -0.75, -1.9, -0.05, -0.3,
];

pub(crate) fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(4, 5).unwrap(), Mask::new(&KEEP)).unwrap()
}

pub(crate) fn input() -> RolloutInput<'static, f64> {
    RolloutInput { old_log_probs: &OLD, rollout_log_probs: &SAMPLER }
}

/// verl computes in single precision; its results are recorded to six digits.
#[track_caller]
pub(crate) fn near(got: f64, expected: f64) {
    approx::assert_relative_eq!(got, expected, epsilon = 1.5e-6, max_relative = 1.5e-6);
}
