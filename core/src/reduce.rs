//! The one engine behind every token-wise formula: masks, lanes and sums in one place.
//!
//! A formula is a function of one kept token. The engine calls it in groups of [`LANES`] slots, hands zeros to dropped and
//! missing slots, writes 0 there, and adds up what the formula wants summed. The order of every addition is fixed:
//!
//! 1. slot `s` of a sequence goes to lane `s mod 16` of its block of 1024 slots; lanes are `f64`, so a sum of `f32` terms
//!    keeps 29 bits to spare;
//! 2. the 16 lanes are added as a tree: `l + (l + 8)`, then `+ 4`, `+ 2`, `+ 1`;
//! 3. blocks, then sequences, are added in order with a compensated sum.
//!
//! Dropped slots add `+0`, so padding on the right changes no bit: padded and packed agree.

use crate::{layout::Row, real::Real};

/// Virtual lanes. 16 rather than 8: arrays of 8 were seen to fall back to scalar code on some targets.
pub(crate) const LANES: usize = 16;
/// Slots whose sum is taken in plain `f64` lanes before it enters the compensated sum.
const BLOCK: usize = 1024;

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

/// Applies `token` to every kept token of one sequence: `INS` inputs, `OUTS` outputs, `SUMS` sums.
///
/// Slices are the sequence's parts and have the length of `row.keep`. Dropped slots get 0 in every output.
#[inline(always)]
pub(crate) fn map_row<R: Real, const INS: usize, const OUTS: usize, const SUMS: usize>(
    row: &Row<'_>,
    inputs: [&[R]; INS],
    mut outputs: [&mut [R]; OUTS],
    token: impl Fn([R; INS]) -> ([R; OUTS], [f64; SUMS]),
) -> [f64; SUMS] {
    let inputs = inputs.map(|input| row.of(input));
    let mut outputs = outputs.each_mut().map(|output| row.of_mut(output));
    let mut sums = [Sum::default(); SUMS];
    let mut start = 0;
    while start < row.keep.len() {
        let end = row.keep.len().min(start + BLOCK);
        let mut lanes = [[0.0; LANES]; SUMS];
        let mut slot = start;
        while slot + LANES <= end {
            step(row.keep, &inputs, &mut outputs, slot, LANES, &mut lanes, &token);
            slot += LANES;
        }
        if slot < end {
            step(row.keep, &inputs, &mut outputs, slot, end - slot, &mut lanes, &token);
        }
        for (sum, lanes) in sums.iter_mut().zip(lanes) {
            sum.add(tree(lanes));
        }
        start = end;
    }
    sums.map(Sum::value)
}

/// `live` slots from `slot` on, one lane each; the remaining lanes add nothing.
#[inline(always)]
fn step<R: Real, const INS: usize, const OUTS: usize, const SUMS: usize>(
    keep: &[bool],
    inputs: &[&[R]; INS],
    outputs: &mut [&mut [R]; OUTS],
    slot: usize,
    live: usize,
    lanes: &mut [[f64; LANES]; SUMS],
    token: &impl Fn([R; INS]) -> ([R; OUTS], [f64; SUMS]),
) {
    let keep = &keep[slot..slot + live];
    let inputs = inputs.map(|input| &input[slot..slot + live]);
    let mut results = [[R::zero(); LANES]; OUTS];
    for lane in 0..live {
        let kept = keep[lane];
        // select on the way in, so that nothing of a dropped slot enters any arithmetic
        let (out, terms) = token(inputs.map(|input| if kept { input[lane] } else { R::zero() }));
        for (result, out) in results.iter_mut().zip(out) {
            result[lane] = if kept { out } else { R::zero() };
        }
        for (lanes, term) in lanes.iter_mut().zip(terms) {
            lanes[lane] += if kept { term } else { 0.0 };
        }
    }
    for (output, result) in outputs.iter_mut().zip(results) {
        output[slot..slot + live].copy_from_slice(&result[..live]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Layout, Mask};

    fn total(values: &[f32], keep: &[bool]) -> f64 {
        let layout = Layout::padded(1, values.len()).unwrap();
        let batch = Batch::new(layout, Mask::new(keep)).unwrap();
        let row = batch.rows().next().unwrap();
        let [sum] = map_row(&row, [values], [], |[x]| ([], [x.widen()]));
        sum
    }

    #[test]
    fn a_mean_of_a_million_is_within_one_ulp_of_f64() {
        // equal values make every rounding error point the same way: the worst case for plain lanes
        for value in [0.1_f32, 1.0 / 3.0, 1e-3, 12345.678] {
            let values = vec![value; 1_000_003];
            let mean = (total(&values, &vec![true; values.len()]) / values.len() as f64) as f32;
            assert_eq!(mean, value);
        }
    }

    #[test]
    fn padding_and_poison_change_no_bit() {
        for len in [0, 1, 7, 8, 9, 15, 16, 17, 1023, 1024, 1025, 2050] {
            let mut values: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).fract() - 0.4).collect();
            let mut keep: Vec<bool> = (0..len).map(|i| i % 5 != 3).collect();
            let plain = total(&values, &keep);
            for (value, keep) in values.iter_mut().zip(&keep) {
                if !keep {
                    *value = f32::NAN;
                }
            }
            values.extend([f32::INFINITY; 21]);
            keep.extend([false; 21]);
            assert_eq!(plain.to_bits(), total(&values, &keep).to_bits(), "length {len}");
        }
    }

    #[test]
    fn the_compensated_sum_keeps_what_a_plain_one_loses() {
        let mut sum = Sum::default();
        for x in [1.0, 1e100, 1.0, -1e100] {
            sum.add(x);
        }
        assert_eq!(sum.value(), 2.0);
        let mut sum = Sum::default();
        sum.add(f64::INFINITY);
        sum.add(1.0);
        assert_eq!(sum.value(), f64::INFINITY);
        sum.add(f64::NEG_INFINITY);
        assert!(sum.value().is_nan());
    }
}
