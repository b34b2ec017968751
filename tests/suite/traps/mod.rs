//! The details that are easiest to get wrong, one test each: it would fail if the trap were fallen into.

pub(crate) mod compare;
mod losses;
mod rollouts;
mod scores;

use tokenwise::{Batch, Layout, Mask};

/// A padded batch that borrows its mask.
fn batch<'a>(rows: usize, keep: &'a [bool]) -> Batch<'a> {
    Batch::new(Layout::padded(rows, keep.len() / rows).unwrap(), Mask::new(keep)).unwrap()
}

fn near(got: f64, want: f64) {
    approx::assert_relative_eq!(got, want, epsilon = 2e-6, max_relative = 2e-6);
}

fn all_near(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (&got, &want) in got.iter().zip(want) {
        near(got, want);
    }
}
