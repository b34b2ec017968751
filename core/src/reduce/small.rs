//! The engine for modules that have to be small: formulas are called through a pointer, one token at a time.

use super::{tree, Real, Row, Sum, BLOCK, LANES};

/// The most inputs, outputs or sums of a formula.
pub(crate) const MOST: usize = 24;

/// What a formula reads and writes at one slot.
pub(crate) struct Slot<R> {
    pub(crate) inputs: [R; MOST],
    pub(crate) outputs: [R; MOST],
    pub(crate) terms: [f64; MOST],
}

impl<R: Real> Slot<R> {
    pub(crate) fn new() -> Self {
        Self { inputs: [R::zero(); MOST], outputs: [R::zero(); MOST], terms: [0.0; MOST] }
    }
}

/// A formula. Not `Fn`: its tables would hold three functions for every formula, two of them unused.
pub(crate) trait Token<R> {
    fn at(&self, slot: &mut Slot<R>);
}

impl<R, F: Fn(&mut Slot<R>)> Token<R> for F {
    fn at(&self, slot: &mut Slot<R>) {
        self(slot);
    }
}

#[inline(never)]
pub(crate) fn fold_row<R: Real>(
    row: &Row<'_>,
    inputs: &[&[R]],
    outputs: &mut [&mut [R]],
    sums: &mut [f64],
    token: &dyn Token<R>,
) {
    let mut slot = Slot::new();
    let (mut totals, mut lanes) = ([Sum::ZERO; MOST], [[0.0; LANES]; MOST]);
    for (index, &keep) in row.keep.iter().enumerate() {
        if keep {
            for (to, from) in slot.inputs.iter_mut().zip(inputs) {
                *to = from[row.start + index];
            }
            token.at(&mut slot);
            for (s, lanes) in lanes.iter_mut().enumerate().take(sums.len()) {
                lanes[index % LANES] += slot.terms[s];
            }
        }
        for (o, output) in outputs.iter_mut().enumerate() {
            output[row.start + index] = if keep { slot.outputs[o] } else { R::zero() };
        }
        if (index + 1) % BLOCK == 0 || index + 1 == row.keep.len() {
            for s in 0..sums.len() {
                totals[s].add(tree(lanes[s]));
                lanes[s] = [0.0; LANES];
            }
        }
    }
    for (s, sum) in sums.iter_mut().enumerate() {
        *sum = totals[s].value();
    }
}
