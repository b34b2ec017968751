//! Recursions from the last token of a sequence to the first, such as returns and traces.
//!
//! Each token depends on the one after it, so a single sequence is bound by latency. With AVX2, eight sequences are
//! computed side by side (see `simd::recursion`). Each sequence sees the same operations in the same order, so the bits
//! do not change.
//!
//! The state has the type of the columns. In `f64` for `f32` columns it would take 22 % more instructions in `gae` and
//! 15 % in `discounted_returns` (AVX2, counted by callgrind); a caller who needs it converts the columns.

use crate::{
    layout::{Batch, Row},
    parallel::{in_order, Work},
    real::Real,
    simd::{recursion::side_by_side, Pack},
};

/// What a recursion does at a dropped token between two kept ones.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Across {
    /// "Next" is the next kept token; nothing decays on the way. verl 0.9.1, NeMo-RL (2026-08).
    #[default]
    StepOver,
    /// A dropped token is a step with reward 0 and value 0: it costs a discount and breaks the bootstrap. OpenRLHF
    /// 0.11.
    ZeroStep,
}

/// The formula of a recursion: one token, given the state after the next one.
pub(crate) trait Recursion<R: Real, const INS: usize, const OUTS: usize, const STATE: usize>:
    Copy + Sync
{
    /// A kept token: its outputs, and the state for the token before it.
    fn kept<V: Pack<R>>(&self, inputs: [V; INS], next: [V; STATE]) -> ([V; OUTS], [V; STATE]);

    /// The state before a dropped token between kept ones, under [`Across::ZeroStep`].
    fn dropped(&self, next: [R; STATE]) -> [R; STATE];
}

/// The progress of the recursion over one sequence.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<R, const STATE: usize> {
    /// First slot of the sequence.
    pub(crate) start: usize,
    /// Slots not yet computed, counted from the first.
    pub(crate) left: usize,
    /// The state after the last of them.
    pub(crate) next: [R; STATE],
}

/// Runs a recursion over every sequence. `bootstrap` gives the state after the last kept token of a sequence; dropped
/// slots get 0.
pub(crate) fn run<R: Real, F, const INS: usize, const OUTS: usize, const STATE: usize>(
    batch: &Batch<'_>,
    formula: F,
    inputs: [&[R]; INS],
    across: Across,
    bootstrap: &(impl Fn(usize) -> [R; STATE] + Sync),
    outputs: [&mut [R]; OUTS],
) where
    F: Recursion<R, INS, OUTS, STATE>,
{
    in_order(
        batch,
        Work::ONE,
        outputs,
        |part, outputs, _| {
            let inputs = inputs.map(|input| part.of(input));
            run_part(&part.batch, formula, inputs, across, &|row| bootstrap(part.sequences.start + row), outputs);
        },
        |()| (),
    );
}

#[inline(always)]
fn run_part<R: Real, F, const INS: usize, const OUTS: usize, const STATE: usize>(
    batch: &Batch<'_>,
    formula: F,
    inputs: [&[R]; INS],
    across: Across,
    bootstrap: &impl Fn(usize) -> [R; STATE],
    mut outputs: [&mut [R]; OUTS],
) where
    F: Recursion<R, INS, OUTS, STATE>,
{
    let keep = batch.mask().as_slice();
    let begin = |(sequence, row): (usize, Row<'_>), outputs: &mut [&mut [R]; OUTS]| {
        let left = row.last_kept().map_or(0, |last| last + 1);
        for output in outputs {
            row.of_mut(output)[left..].fill(R::zero());
        }
        Cursor { start: row.start, left, next: bootstrap(sequence) }
    };
    let mut rows = batch.rows().enumerate();
    if across == Across::StepOver {
        let mut replace = |done: Option<Cursor<R, STATE>>, outputs: &mut [&mut [R]; OUTS]| {
            if let Some(cursor) = done {
                alone(formula, inputs, keep, across, cursor, outputs);
            }
            rows.next().map(|row| begin(row, outputs))
        };
        for cursor in side_by_side(formula, inputs, keep, &mut outputs, &mut replace).into_iter().flatten() {
            alone(formula, inputs, keep, across, cursor, &mut outputs);
        }
    }
    for row in rows {
        let cursor = begin(row, &mut outputs);
        alone(formula, inputs, keep, across, cursor, &mut outputs);
    }
}

/// Finishes one sequence in scalar code.
#[inline(always)]
fn alone<R: Real, F, const INS: usize, const OUTS: usize, const STATE: usize>(
    formula: F,
    inputs: [&[R]; INS],
    keep: &[bool],
    across: Across,
    cursor: Cursor<R, STATE>,
    outputs: &mut [&mut [R]; OUTS],
) where
    F: Recursion<R, INS, OUTS, STATE>,
{
    let slots = cursor.start..cursor.start + cursor.left;
    let keep = &keep[slots.clone()];
    let inputs = inputs.map(|input| &input[slots.clone()]);
    let mut outputs = outputs.each_mut().map(|output| &mut output[slots.clone()]);
    let mut next = cursor.next;
    for t in (0..keep.len()).rev() {
        let mut out = [R::zero(); OUTS];
        if keep[t] {
            // a loop: `array::map` is not always inlined, which would cost a call per token
            let mut token = [R::zero(); INS];
            for (token, input) in token.iter_mut().zip(&inputs) {
                *token = input[t];
            }
            (out, next) = formula.kept(token, next);
        } else if across == Across::ZeroStep {
            next = formula.dropped(next);
        }
        for (output, out) in outputs.iter_mut().zip(out) {
            output[t] = out;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{advantage::*, Batch, Layout, Mask};

    /// A batch of one sequence is always computed by the scalar code.
    #[test]
    fn sequences_side_by_side_have_the_bits_of_sequences_alone() {
        let lengths = [37, 0, 8, 100, 7, 64, 65, 1, 9, 33, 250, 16, 15, 3, 90, 41, 8, 8, 0, 77];
        let mut offsets = vec![0_u32];
        lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
        let tokens = offsets[lengths.len()] as usize;
        for holes in [u32::MAX, 9, 2] {
            let noise = |i: usize, salt: u32| (i as u32).wrapping_mul(2_654_435_761).wrapping_add(salt).rotate_left(13);
            let keep: Vec<bool> = (0..tokens).map(|i| noise(i, 7) % holes != 0).collect();
            let number = |i: usize, salt| if keep[i] { noise(i, salt) as f32 / 4e9 - 0.4 } else { f32::NAN };
            let rewards: Vec<f32> = (0..tokens).map(|i| number(i, 1)).collect();
            let values: Vec<f32> = (0..tokens).map(|i| number(i, 2)).collect();
            let bootstrap: Vec<f32> = (0..lengths.len()).map(|i| i as f32 * 0.1).collect();
            let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Default::default() };
            let of = |layout: Layout<'_>, tokens: core::ops::Range<usize>, rows: core::ops::Range<usize>| {
                let batch = Batch::new(layout, Mask::new(&keep[tokens.clone()])).unwrap();
                let (mut advantages, mut returns) = (vec![9.0; tokens.len()], vec![9.0; tokens.len()]);
                let (rewards, bootstrap) = (&rewards[tokens.clone()], &bootstrap[rows]);
                let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
                gae(&batch, GaeInput { rewards, values: &values[tokens.clone()], bootstrap }, &config, output).unwrap();
                let mut discounted = vec![9.0; tokens.len()];
                let input = ReturnsInput { rewards, bootstrap };
                discounted_returns(&batch, input, &ReturnsConfig { gamma: 0.9, ..Default::default() }, &mut discounted)
                    .unwrap();
                [advantages, returns, discounted].map(|out| out.into_iter().map(f32::to_bits).collect::<Vec<_>>())
            };
            let all = of(Layout::packed(&offsets).unwrap(), 0..tokens, 0..lengths.len());
            for (row, &length) in lengths.iter().enumerate() {
                let slots = offsets[row] as usize..offsets[row + 1] as usize;
                let one = of(Layout::padded(1, length as usize).unwrap(), slots.clone(), row..row + 1);
                for (all, one) in all.iter().zip(one) {
                    assert_eq!(all[slots.clone()], one, "row {row}");
                }
            }
        }
    }
}
