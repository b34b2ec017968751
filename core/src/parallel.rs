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
    #[cfg(feature = "rayon")]
    if let Some(parts) = threads::worth_splitting(batch, each) {
        let mut reports = vec![P::default(); batch.sequences()];
        let task = threads::Task { batch, each, run: &run, tokens: batch.tokens().div_ceil(parts) };
        task.split(0..batch.sequences(), outputs, &mut reports);
        return reports.into_iter().for_each(combine);
    }
    let _ = each;
    run(&Part { batch: *batch, rows: 0..batch.sequences(), tokens: 0..batch.tokens() }, outputs, &mut combine);
}

#[cfg(feature = "rayon")]
mod threads {
    use core::{array, ops::Range};

    use super::{Batch, Each, Part, Real};

    /// Numbers that one thread should have to read: with fewer, waking the others costs more than they save.
    const PART: usize = 1 << 16;
    /// Parts a thread gets, so that one that is late has fewer.
    const PARTS_EACH: usize = 4;

    /// Into how many parts, if into any.
    pub(super) fn worth_splitting(batch: &Batch<'_>, each: Each) -> Option<usize> {
        let threads = rayon::current_num_threads();
        let parts = (batch.tokens().saturating_mul(each.work) / PART).min(threads * PARTS_EACH).min(batch.sequences());
        (threads > 1 && parts > 1).then_some(parts)
    }

    pub(super) struct Task<'t, 'a, F> {
        pub(super) batch: &'t Batch<'a>,
        pub(super) each: Each,
        pub(super) run: &'t F,
        /// About as many in each part.
        pub(super) tokens: usize,
    }

    impl<'a, F> Task<'_, 'a, F> {
        /// The caller takes the first part itself while others are woken for the rest: its data is near.
        pub(super) fn split<R: Real, P: Send, const OUTS: usize>(
            &self,
            rows: Range<usize>,
            outputs: [&mut [R]; OUTS],
            reports: &mut [P],
        ) where
            F: Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
        {
            rayon::in_place_scope(|scope| {
                let (mut rows, mut outputs, mut reports) = (rows, outputs, reports);
                while let Some(middle) = self.middle(&rows) {
                    let tokens = self.batch.first_token(middle) - self.batch.first_token(rows.start);
                    let mut halves = outputs.map(|output| output.split_at_mut(tokens * self.each.width));
                    outputs = array::from_fn(|o| core::mem::take(&mut halves[o].0));
                    let others = halves.map(|(_, right)| right);
                    let (mine, other_reports) = reports.split_at_mut(middle - rows.start);
                    reports = mine;
                    let other_rows = middle..rows.end;
                    scope.spawn(move |_| self.split(other_rows, others, other_reports));
                    rows.end = middle;
                }
                let mut reports = reports.iter_mut();
                let mut report = |of_row| {
                    if let Some(report) = reports.next() {
                        *report = of_row;
                    }
                };
                let tokens = self.batch.first_token(rows.start)..self.batch.first_token(rows.end);
                (self.run)(&Part { batch: self.batch.part(rows.clone()), rows, tokens }, outputs, &mut report);
            });
        }

        /// The sequence that begins about in the middle, if these are more than one part.
        fn middle(&self, rows: &Range<usize>) -> Option<usize> {
            let (start, end) = (self.batch.first_token(rows.start), self.batch.first_token(rows.end));
            if rows.len() < 2 || end - start <= self.tokens {
                return None;
            }
            let (mut low, mut high) = (rows.start + 1, rows.end - 1);
            while low < high {
                let between = low + (high - low) / 2;
                if self.batch.first_token(between) - start < (end - start) / 2 {
                    low = between + 1;
                } else {
                    high = between;
                }
            }
            Some(low)
        }
    }
}

#[cfg(test)]
#[cfg(feature = "rayon")]
#[path = "parallel_tests.rs"]
mod tests;
