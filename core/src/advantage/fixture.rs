//! The fixture of the golden numbers in the unit tests: four sequences, two groups, dropped slots poisoned.

use crate::{Batch, Layout, Mask};

const NAN: f64 = f64::NAN;

#[rustfmt::skip]
const KEEP: [bool; 20] = [
    true, true, true,  true,  false,
    true, true, false, true,  true,
    true, true, false, false, false,
    true, true, true,  true,  true,
];
#[rustfmt::skip]
pub(super) const REWARDS: [f64; 20] = [
    0.0, 0.0,  0.0, 1.0, NAN,
    0.0, 0.5,  NAN, 0.0, 0.25,
    0.0, -1.0, NAN, NAN, NAN,
    0.0, 0.0,  0.0, 0.0, 2.0,
];
#[rustfmt::skip]
pub(super) const VALUES: [f64; 20] = [
    0.1,  0.2,  0.3, 0.4, NAN,
    0.5,  0.4,  NAN, 0.3, 0.2,
    -0.2, -0.4, NAN, NAN, NAN,
    1.0,  1.1,  1.2, 1.3, 1.4,
];
#[rustfmt::skip]
pub(super) const OLD_LOG_PROBS: [f64; 20] = [
    -0.5, -1.0, -0.2, -0.7,  NAN,
    -0.3, -2.0, NAN,  -0.6,  -0.9,
    -1.2, -0.1, NAN,  NAN,   NAN,
    -0.4, -0.8, -1.5, -0.05, -0.25,
];
#[rustfmt::skip]
pub(super) const LOG_PROBS: [f64; 20] = [
    -0.45, -1.3,  -0.2, -0.2,  NAN,
    -0.6,  -1.2,  NAN,  -0.65, -0.95,
    -1.0,  -0.15, NAN,  NAN,   NAN,
    -0.9,  -0.7,  -1.1, -0.06, -0.2,
];
#[rustfmt::skip]
pub(super) const SUM_PI_SQUARED: [f64; 20] = [
    0.5, 0.3, 0.7, 0.4, NAN,
    0.6, 0.2, NAN, 0.5, 0.4,
    0.3, 0.8, NAN, NAN, NAN,
    0.5, 0.4, 0.2, 0.9, 0.7,
];
/// The sum of the rewards of each sequence.
pub(super) const SCORES: [f64; 4] = [1.0, 0.75, -1.0, 2.0];
pub(super) const PAIRS: [u32; 4] = [0, 0, 1, 1];

pub(super) fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(4, 5).unwrap(), Mask::new(&KEEP)).unwrap()
}

/// One number per sequence, copied to its kept tokens.
pub(super) fn on_tokens(rows: [f64; 4]) -> [f64; 20] {
    core::array::from_fn(|slot| if KEEP[slot] { rows[slot / 5] } else { 0.0 })
}

#[track_caller]
pub(super) fn assert_close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    for (index, (&a, &b)) in got.iter().zip(expected).enumerate() {
        assert!(approx::relative_eq!(a, b, epsilon = 1e-14, max_relative = 1e-12), "[{index}]: got {a}, expected {b}");
    }
}
