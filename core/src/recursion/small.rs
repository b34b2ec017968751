//! The engine for modules that have to be small: formulas are called through a pointer, one token at a time.

use super::Recursion;
use crate::{
    advantage::Across,
    layout::Batch,
    real::Real,
    reduce::small::{Slot, MOST},
};

/// Where a recursion has come to.
enum Place<'a, R> {
    /// Behind the last token of a sequence.
    End(usize),
    Kept(&'a mut Slot<R>),
    /// A dropped token between kept ones, where it counts.
    Dropped,
}

/// A formula with its state. Not `FnMut`: its tables would hold a second function for every formula.
trait Step<R> {
    fn at(&mut self, place: Place<'_, R>);
}

impl<R, F: FnMut(Place<'_, R>)> Step<R> for F {
    fn at(&mut self, place: Place<'_, R>) {
        self(place);
    }
}

/// The recursion over every sequence; `bootstrap` is what follows the last kept token of each. Dropped slots get 0.
pub(crate) fn run<R: Real, F, const INS: usize, const OUTS: usize, const STATE: usize>(
    batch: &Batch<'_>,
    formula: F,
    inputs: [&[R]; INS],
    across: Across,
    bootstrap: &(impl Fn(usize) -> [R; STATE] + Sync),
    mut outputs: [&mut [R]; OUTS],
) where
    F: Recursion<R, INS, OUTS, STATE>,
{
    const { assert!(INS <= MOST && OUTS <= MOST) };
    let mut next = [R::zero(); STATE];
    walk(batch, &inputs, across, &mut outputs, &mut |place: Place<'_, R>| match place {
        Place::End(sequence) => next = bootstrap(sequence),
        Place::Kept(slot) => {
            if let Some(&token) = slot.inputs.first_chunk::<INS>() {
                let (out, before) = formula.kept(token, next);
                slot.outputs.iter_mut().zip(out).for_each(|(to, out)| *to = out);
                next = before;
            }
        }
        Place::Dropped => next = formula.dropped(next),
    });
}

#[inline(never)]
fn walk<R: Real>(batch: &Batch<'_>, inputs: &[&[R]], across: Across, outputs: &mut [&mut [R]], step: &mut dyn Step<R>) {
    let mut slot = Slot::new();
    for (sequence, row) in batch.rows().enumerate() {
        step.at(Place::End(sequence));
        let mut seen_kept = false;
        for (index, &keep) in row.keep.iter().enumerate().rev() {
            let t = row.start + index;
            if keep {
                seen_kept = true;
                for (to, from) in slot.inputs.iter_mut().zip(inputs) {
                    *to = from[t];
                }
                step.at(Place::Kept(&mut slot));
            } else if seen_kept && across == Across::ZeroStep {
                step.at(Place::Dropped);
            }
            for (o, output) in outputs.iter_mut().enumerate() {
                output[t] = if keep { slot.outputs[o] } else { R::zero() };
            }
        }
    }
}
