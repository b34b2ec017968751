//! Many sequences at once (feature `rayon`).
//!
//! Sequences do not depend on each other, and what is summed over them is added in their order whoever computed it: the bits are the
//! same for any number of threads.

use core::ops::Range;

use crate::{layout::Batch, real::Real};

/// Some neighbouring sequences of a batch.
pub(crate) struct Part<'a> {
    pub(crate) batch: Batch<'a>,
    /// Which sequences of the whole these are.
    pub(crate) rows: Range<usize>,
    /// Where their tokens lie in the slices of the whole.
    pub(crate) tokens: Range<usize>,
}

/// What a token is worth.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "rayon"), allow(dead_code, reason = "only those who split want to know"))]
pub(crate) struct Each {
    /// Its numbers in each output.
    pub(crate) width: usize,
    /// The numbers read for it.
    pub(crate) work: usize,
}

impl Each {
    pub(crate) const ONE: Self = Self { width: 1, work: 1 };
}

/// Runs `run` over all sequences, in parts if that pays, and gives what it reports of each sequence to `combine`, in their order.
///
/// `run` gets the outputs of its part.
#[cfg_attr(all(feature = "small", target_arch = "wasm32"), inline(always))]
pub(crate) fn in_order<'a, R: Real, P: Copy + Default + Send, const OUTS: usize>(
    batch: &Batch<'a>,
    each: Each,
    outputs: [&mut [R]; OUTS],
    run: impl Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
    mut combine: impl FnMut(P),
) {
    let whole = Part { batch: *batch, rows: 0..batch.sequences(), tokens: 0..batch.tokens() };
    #[cfg(feature = "rayon")]
    if threads::worth_splitting(&whole, each) {
        let mut reports = vec![P::default(); batch.sequences()];
        threads::split(whole, each, outputs, &mut reports, &run);
        return reports.into_iter().for_each(combine);
    }
    let _ = each;
    run(&whole, outputs, &mut combine);
}

#[cfg(feature = "rayon")]
mod threads {
    use core::array;

    use super::{Each, Part, Real};

    /// Numbers that one thread should have to read: with fewer, waking the others costs more than they save.
    const PART: usize = 1 << 16;

    pub(super) fn worth_splitting(part: &Part<'_>, each: Each) -> bool {
        part.rows.len() > 1
            && part.tokens.len().saturating_mul(each.work) >= 2 * PART
            && rayon::current_num_threads() > 1
    }

    pub(super) fn split<'a, R: Real, P: Send, const OUTS: usize>(
        part: Part<'a>,
        each: Each,
        outputs: [&mut [R]; OUTS],
        reports: &mut [P],
        run: &(impl Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync),
    ) {
        if !worth_splitting(&part, each) {
            let mut reports = reports.iter_mut();
            let mut report = |of_row| {
                if let Some(report) = reports.next() {
                    *report = of_row;
                }
            };
            return run(&part, outputs, &mut report);
        }
        let (left, right) = part.batch.halves();
        let (row, token) = (part.rows.start + left.sequences(), part.tokens.start + left.tokens());
        let mut outputs = outputs.map(|output| output.split_at_mut(left.tokens() * each.width));
        let left_outputs = array::from_fn(|o| core::mem::take(&mut outputs[o].0));
        let right_outputs = outputs.map(|(_, right)| right);
        let (left_reports, right_reports) = reports.split_at_mut(left.sequences());
        let left = Part { batch: left, rows: part.rows.start..row, tokens: part.tokens.start..token };
        let right = Part { batch: right, rows: row..part.rows.end, tokens: token..part.tokens.end };
        rayon::join(
            || split(left, each, left_outputs, left_reports, run),
            || split(right, each, right_outputs, right_reports, run),
        );
    }
}

#[cfg(test)]
#[cfg(feature = "rayon")]
#[path = "parallel_tests.rs"]
mod tests;
