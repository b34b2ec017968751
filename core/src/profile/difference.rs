//! The comparison of two runs.

use core::fmt::Debug;

use super::{results::Results, Convention, Conventions, Quantity, QuantityShape};
use crate::{error::Result, real::Real};

/// A result that comes out differently, and why.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// Which result.
    pub quantity: Quantity,
    /// Where the two are farthest apart: a token slot, a sequence, or `None` for a single number.
    pub index: Option<usize>,
    /// Both numbers there; an error where the batch has too few tokens for one of the two.
    pub values: [Result<f64>; 2],
    /// How far apart they are; NaN, which counts as farthest, where one of them is not a number.
    pub difference: f64,
    /// How many entries differ.
    pub count: usize,
    pub(super) conventions: &'a [Conventions; 2],
    /// One bit per convention.
    pub(super) causes: u64,
}

/// A convention that makes a result come out differently.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Cause<'a> {
    /// Which convention.
    pub convention: Convention,
    /// Its values on both sides.
    pub values: [&'a dyn Debug; 2],
}

impl<'a> Difference<'a> {
    /// The conventions that cause the difference.
    pub fn causes(&self) -> impl Iterator<Item = Cause<'a>> {
        let [first, second] = self.conventions;
        self.named().map(|convention| Cause { convention, values: [first.of(convention), second.of(convention)] })
    }

    /// Their names, for a host that looks up the values itself.
    #[doc(hidden)]
    pub fn named(&self) -> impl Iterator<Item = Convention> {
        let causes = self.causes;
        Convention::ALL.iter().copied().filter(move |&convention| causes & bit(convention) != 0)
    }
}

pub(super) fn bit(convention: Convention) -> u64 {
    1 << convention as u32
}

/// Compares one result of two runs: `None` if both are the same.
pub(super) fn difference<'a, R: Real>(
    quantity: Quantity,
    [first, second]: [&Results<'_, R>; 2],
    conventions: &'a [Conventions; 2],
) -> Option<Difference<'a>> {
    let found = |index, values, difference, count| {
        Some(Difference { quantity, index, values, difference, count, conventions, causes: 0 })
    };
    match (first.record.status(quantity)?, second.record.status(quantity)?) {
        (Ok(()), Ok(())) => {
            let (mut count, mut farthest) = (0, None);
            for index in 0..first.len(quantity) {
                let (a, b) = (first.entry(quantity, index), second.entry(quantity, index));
                if a == b || (a.is_nan() && b.is_nan()) {
                    continue;
                }
                count += 1;
                // `f64::abs` needs std before Rust 1.85
                let apart = Real::abs(a - b);
                // NaN is farther than any number; among equals the first one stays
                if farthest.map_or(true, |(_, _, _, most): (usize, f64, f64, f64)| {
                    !most.is_nan() && (apart.is_nan() || apart > most)
                }) {
                    farthest = Some((index, a, b, apart));
                }
            }
            let (index, a, b, apart) = farthest?;
            let index = (quantity.shape() != QuantityShape::Scalar).then_some(index);
            found(index, [Ok(a), Ok(b)], apart, count)
        }
        (a, b) if a == b => None,
        // at least one side is an error: of a side that is not, the first entry is reported
        (a, b) => {
            let entry = |results: &Results<'_, R>, status: Result<()>| {
                status.map(|()| if results.len(quantity) > 0 { results.entry(quantity, 0) } else { 0.0 })
            };
            found(None, [entry(first, a), entry(second, b)], f64::NAN, first.len(quantity))
        }
    }
}
