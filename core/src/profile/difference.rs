//! Two runs side by side.

use core::fmt::Debug;

use super::{results::Results, Convention, Conventions, Quantity, QuantityShape};
use crate::{error::Kept, real::Real};

/// A result that comes out differently, and why.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    /// Which result.
    pub quantity: Quantity,
    /// Where the two are farthest apart: a token slot, a sequence, or nothing for a single number.
    pub index: Option<usize>,
    /// Both numbers there; an error where the batch has too little for one of the two.
    pub values: [Kept<f64>; 2],
    /// How far apart they are; NaN, which counts as farthest, where one of them is no number.
    pub difference: f64,
    /// How many entries differ.
    pub count: usize,
    pub(super) conventions: &'a [Conventions; 2],
    /// One bit per convention.
    pub(super) causes: u64,
}

/// A convention that makes a result come out differently.
#[derive(Clone, Copy, Debug)]
pub struct Cause<'a> {
    /// Which.
    pub convention: Convention,
    /// What it is on both sides.
    pub values: [&'a dyn Debug; 2],
}

impl<'a> Difference<'a> {
    /// The conventions that made it so.
    pub fn causes(&self) -> impl Iterator<Item = Cause<'a>> {
        let [first, second] = self.conventions;
        self.named().map(|convention| Cause { convention, values: [first.of(convention), second.of(convention)] })
    }

    /// Their names, for a host that knows the values.
    #[doc(hidden)]
    pub fn named(&self) -> impl Iterator<Item = Convention> {
        let causes = self.causes;
        Convention::ALL.iter().copied().filter(move |&convention| causes & bit(convention) != 0)
    }
}

pub(super) fn bit(convention: Convention) -> u64 {
    1 << convention as u32
}

/// One result of two runs side by side: `None` if it comes out the same.
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
                let apart = (a - b).abs();
                // NaN is farther than any number, and the first of equals stays
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
        // one of them refused: its first entry stands for the other
        (a, b) => {
            let entry = |results: &Results<'_, R>, status: Kept<()>| {
                status.map(|()| if results.len(quantity) > 0 { results.entry(quantity, 0) } else { 0.0 })
            };
            found(None, [entry(first, a), entry(second, b)], f64::NAN, first.len(quantity))
        }
    }
}
