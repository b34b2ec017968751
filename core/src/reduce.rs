//! The one engine behind every token-wise formula: masks, lanes and sums in one place.
//!
//! A formula is a function of one kept token. The engine ([`fold_row`]) calls it for a [`CHUNK`] of slots in a plain
//! loop, passes zeros for dropped and missing slots, writes 0 there, and sums the terms the formula returns. The order
//! of every addition is fixed:
//!
//! 1. slot `s` of a sequence goes to lane `s mod 16` of its block of 1024 slots; lanes are `f64`, so a sum of `f32`
//!    terms keeps 29 bits to spare;
//! 2. the 16 lanes are added as a tree: `l + (l + 8)`, then `+ 4`, `+ 2`, `+ 1`;
//! 3. blocks, then sequences, are added in order with a compensated sum.
//!
//! Dropped slots add `+0`, so padding on the right changes no bit: padded and packed agree.

use core::array;

use crate::{layout::Row, real::Real};

#[cfg(test)]
mod tests;

/// Lanes of a sum, whatever the width of the machine's vectors. Part of the numeric contract. 16 rather than 8, because
/// LLVM compiled arrays of 8 to scalar code on some targets.
pub(crate) const LANES: usize = 16;
/// Slots whose sum is taken in plain `f64` lanes before it enters the compensated sum.
const BLOCK: usize = 1024;
/// Slots whose terms are computed before they are summed; a divisor of [`BLOCK`]. Changes no bit. Large on targets with
/// vectors, because LLVM fully unrolls a short loop before it could vectorise it; small elsewhere, where stack is
/// scarce and padding costs time.
pub(crate) const CHUNK: usize = {
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32")) {
        64
    } else {
        LANES
    }
};

/// A compensated (Neumaier) sum in `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    pub(crate) const ZERO: Self = Self { total: 0.0, lost: 0.0 };

    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        let total = self.total + x;
        // what the addition rounded away is exact when taken from the larger operand
        self.lost +=
            if magnitude(self.total) >= magnitude(x) { (self.total - total) + x } else { (x - total) + self.total };
        self.total = total;
    }

    /// Adds a number to each of several sums.
    #[inline]
    pub(crate) fn add_each(sums: &mut [Self], numbers: &[f64]) {
        for (sum, &number) in sums.iter_mut().zip(numbers) {
            sum.add(number);
        }
    }

    /// The values of several sums.
    pub(crate) fn values<const N: usize>(sums: &[Self; N]) -> [f64; N] {
        sums.map(Self::value)
    }

    /// The values of several sums, each divided by `count`.
    pub(crate) fn means<const N: usize>(sums: &[Self; N], count: f64) -> [f64; N] {
        sums.map(|sum| sum.value() / count)
    }

    /// The sum; ±inf and NaN pass through.
    #[inline]
    pub(crate) fn value(self) -> f64 {
        if self.total.is_finite() {
            self.total + self.lost
        } else {
            self.total
        }
    }
}

#[inline(always)]
fn magnitude(x: f64) -> f64 {
    if x < 0.0 {
        -x
    } else {
        x
    }
}

/// A term that counts: 1 for yes, 0 for no.
#[inline(always)]
pub(crate) fn count(yes: bool) -> f64 {
    if yes {
        1.0
    } else {
        0.0
    }
}

/// Adds the lanes as a fixed tree.
#[inline(always)]
pub(crate) fn tree<R: Real>(mut lanes: [R; LANES]) -> R {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Cache-line aligned: vectors that cross a line are much slower to store and load again.
#[repr(align(64))]
struct Aligned<T>(T);

/// Writes a function of each kept token of one sequence; dropped slots get 0.
///
/// Slices are those of the batch.
#[inline(always)]
pub(crate) fn map_row<R: Real, const INS: usize>(
    row: &Row<'_>,
    inputs: [&[R]; INS],
    output: &mut [R],
    token: impl Fn([R; INS]) -> R,
) {
    fold_row::<R, R, INS, 1, 0>(row, inputs, [output], |inputs| ([token(inputs)], []));
}

/// The sum over the kept tokens of one sequence.
#[inline(always)]
pub(crate) fn row_total<R: Real>(row: &Row<'_>, values: &[R]) -> f64 {
    sum_row(row, values, R::widen)
}

/// The sum of `x − y` over the kept tokens of one sequence.
#[inline(always)]
pub(crate) fn row_difference<R: Real>(row: &Row<'_>, x: &[R], y: &[R]) -> f64 {
    let [sum] = fold_row(row, [x, y], [], |[x, y]| ([], [(x - y).widen()]));
    sum
}

/// The engine: calls `token` with the `INS` inputs of each kept token of one sequence, writes the `OUTS` outputs it
/// returns and sums its `SUMS` terms. Dropped slots get 0 in every output.
///
/// Slices are those of the batch. Terms may stay in `R`, which doubles the vector width of an `f32` formula; they are
/// summed in `f64` either way. The loop over a chunk has no masks, sums, branches or bounds checks, so that LLVM
/// vectorises it.
#[inline(always)]
pub(crate) fn fold_row<R: Real, T: Real, const INS: usize, const OUTS: usize, const SUMS: usize>(
    row: &Row<'_>,
    inputs: [&[R]; INS],
    mut outputs: [&mut [R]; OUTS],
    token: impl Fn([R; INS]) -> ([R; OUTS], [T; SUMS]),
) -> [f64; SUMS] {
    let inputs = inputs.map(|input| row.of(input));
    let mut outputs = outputs.each_mut().map(|output| row.of_mut(output));
    let (mut flags, mut padded) = ([false; CHUNK], Aligned([R::zero(); CHUNK]));
    let mut selected = Aligned([[R::zero(); CHUNK]; INS]);
    let (mut results, mut terms) = (Aligned([[R::zero(); CHUNK]; OUTS]), Aligned([[T::zero(); CHUNK]; SUMS]));
    let (mut sums, mut lanes) = ([Sum::default(); SUMS], Aligned([[0.0; LANES]; SUMS]));
    let (selected, results, terms, lanes) = (&mut selected.0, &mut results.0, &mut terms.0, &mut lanes.0);
    let mut start = 0;
    while start < row.keep.len() {
        let keep = chunk(&row.keep[start..], &mut flags);
        let kept = count_kept(keep);
        let whole = kept == CHUNK;
        if kept > 0 {
            for (input, selected) in inputs.iter().zip(&mut *selected).filter(|_| !whole) {
                // select on the way in, so that nothing of a dropped slot enters any arithmetic
                select(keep, chunk(&input[start..], &mut padded.0), selected);
            }
            let views: [&[R; CHUNK]; INS] = array::from_fn(|i| match inputs[i][start..].first_chunk() {
                Some(input) if whole => input,
                _ => &selected[i],
            });
            for slot in 0..CHUNK {
                let (out, term) = token(array::from_fn(|i| views[i][slot]));
                (0..OUTS).for_each(|o| results[o][slot] = out[o]);
                (0..SUMS).for_each(|s| terms[s][slot] = term[s]);
            }
            for (terms, lanes) in terms.iter_mut().zip(&mut *lanes) {
                if !whole {
                    // +0 changes no lane: none is ever −0
                    clear_dropped(keep, terms);
                }
                add_lanes(terms, lanes);
            }
        }
        for (output, result) in outputs.iter_mut().zip(&mut *results) {
            let output = &mut output[start..];
            match output.first_chunk_mut() {
                Some(output) if whole => *output = *result,
                Some(output) => select(keep, result, output),
                None => {
                    clear_dropped(keep, result);
                    output.copy_from_slice(&result[..output.len()]);
                }
            }
        }
        start = row.keep.len().min(start + CHUNK);
        if start % BLOCK == 0 || start == row.keep.len() {
            for (sum, lanes) in sums.iter_mut().zip(&mut *lanes) {
                sum.add(tree(*lanes));
                *lanes = [0.0; LANES];
            }
        }
    }
    sums.map(Sum::value)
}

/// The sum of one cheap `term` of one input, with the bits of [`fold_row`]. Terms are added at once instead of being
/// stored for the chunk; LLVM does not vectorise this form with more than one sum.
#[inline(always)]
pub(crate) fn sum_row<R: Real>(row: &Row<'_>, input: &[R], term: impl Fn(R) -> f64) -> f64 {
    let input = row.of(input);
    let (mut flags, mut padded) = ([false; CHUNK], [R::zero(); CHUNK]);
    let (mut sum, mut lanes) = (Sum::default(), [0.0; LANES]);
    let mut start = 0;
    while start < row.keep.len() {
        let keep = chunk(&row.keep[start..], &mut flags);
        let kept = count_kept(keep);
        match input[start..].first_chunk() {
            Some(input) if kept == CHUNK => add_terms(input, |_| true, &term, &mut lanes),
            _ if kept > 0 => {
                let mut selected = [R::zero(); CHUNK];
                select(keep, chunk(&input[start..], &mut padded), &mut selected);
                add_terms(&selected, |slot| keep[slot], &term, &mut lanes);
            }
            _ => (),
        }
        start = row.keep.len().min(start + CHUNK);
        if start % BLOCK == 0 || start == row.keep.len() {
            sum.add(tree(lanes));
            lanes = [0.0; LANES];
        }
    }
    sum.value()
}

#[inline(always)]
fn add_terms<R: Real>(
    inputs: &[R; CHUNK],
    keep: impl Fn(usize) -> bool,
    term: &impl Fn(R) -> f64,
    lanes: &mut [f64; LANES],
) {
    let mut sums = *lanes;
    for group in (0..CHUNK).step_by(LANES) {
        for lane in 0..LANES {
            // dropped and missing slots add +0, which changes no lane
            sums[lane] += if keep(group + lane) { term(inputs[group + lane]) } else { 0.0 };
        }
    }
    *lanes = sums;
}

/// The next slots of a sequence; at its end a copy in `room`, which keeps its zeros where slots are missing.
///
/// Whatever follows has a fixed number of slots: no loop for what is left over.
#[inline(always)]
fn chunk<'a, T: Copy>(rest: &'a [T], room: &'a mut [T; CHUNK]) -> &'a [T; CHUNK] {
    match rest.first_chunk() {
        Some(chunk) => chunk,
        None => {
            room[..rest.len()].copy_from_slice(rest);
            room
        }
    }
}

#[inline(always)]
fn count_kept(keep: &[bool; CHUNK]) -> usize {
    keep.iter().fold(0, |kept, &keep| kept + u8::from(keep)).into()
}

/// Copies kept slots and writes 0 to dropped ones.
#[inline(always)]
fn select<R: Real>(keep: &[bool; CHUNK], from: &[R; CHUNK], to: &mut [R; CHUNK]) {
    for ((to, &from), &keep) in to.iter_mut().zip(from).zip(keep) {
        *to = if keep { from } else { R::zero() };
    }
}

/// Writes 0 to dropped slots.
#[inline(always)]
fn clear_dropped<R: Real>(keep: &[bool; CHUNK], slots: &mut [R; CHUNK]) {
    for (slot, &keep) in slots.iter_mut().zip(keep) {
        *slot = if keep { *slot } else { R::zero() };
    }
}

#[inline(always)]
pub(crate) fn add_lanes<R: Real>(terms: &[R; CHUNK], lanes: &mut [f64; LANES]) {
    add_terms(terms, |_| true, &R::widen, lanes);
}
