//! Splits a batch into parts that run on threads (feature `rayon`).
//!
//! Sequences do not depend on each other, and what is summed over them is added in their order, whichever thread
//! computed it: the bits are the same for any number of threads. Without the feature there is one part, the whole
//! batch.

use core::ops::Range;

use crate::{layout::Batch, real::Real};

#[cfg(test)]
#[cfg(feature = "rayon")]
mod tests;

/// Some consecutive sequences of a batch.
pub(crate) struct Part<'a> {
    pub(crate) batch: Batch<'a>,
    /// Which sequences of the whole batch these are.
    pub(crate) sequences: Range<usize>,
    /// Where their tokens are in the slices of the whole batch.
    pub(crate) tokens: Range<usize>,
}

impl Part<'_> {
    /// The tokens of this part out of a slice with one entry per token.
    #[inline(always)]
    pub(crate) fn of<'s, T>(&self, tokens: &'s [T]) -> &'s [T] {
        self.rows_of(tokens, 1)
    }

    /// The same out of a slice with `width` entries per token.
    #[inline(always)]
    pub(crate) fn rows_of<'s, T>(&self, rows: &'s [T], width: usize) -> &'s [T] {
        &rows[self.tokens.start * width..self.tokens.end * width]
    }
}

/// The size of the work, for deciding whether and where to split.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "rayon"), allow(dead_code, reason = "read only when splitting"))]
pub(crate) struct Work {
    /// Entries per token in each output.
    pub(crate) width: usize,
    /// Numbers read per token.
    pub(crate) per_token: usize,
}

impl Work {
    pub(crate) const ONE: Self = Self { width: 1, per_token: 1 };
}

/// Calls `run` for all sequences, in parts if that pays, and passes what it reports for each sequence to `combine`, in
/// their order.
///
/// `run` gets a part and that part's outputs.
pub(crate) fn in_order<'a, R: Real, P: Copy + Default + Send, const OUTS: usize>(
    batch: &Batch<'a>,
    work: Work,
    outputs: [&mut [R]; OUTS],
    run: impl Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
    mut combine: impl FnMut(P),
) {
    #[cfg(feature = "rayon")]
    if let Some(parts) = threads::worth_splitting(batch, work) {
        let mut reports = vec![P::default(); batch.sequences()];
        let all = threads::Slices { sequences: 0..batch.sequences(), outputs, reports: &mut reports };
        threads::Task { batch, work, run: &run, least: batch.tokens().div_ceil(parts) }.share(all, parts);
        return reports.into_iter().for_each(combine);
    }
    let _ = work;
    run(&Part { batch: *batch, sequences: 0..batch.sequences(), tokens: 0..batch.tokens() }, outputs, &mut combine);
}

#[cfg(feature = "rayon")]
mod threads {
    use core::{
        array, hint,
        mem::take,
        ops::Range,
        sync::atomic::{AtomicUsize, Ordering::Relaxed},
        time::Duration,
    };
    use std::{
        sync::{Mutex, PoisonError},
        time::Instant,
    };

    use super::{Batch, Part, Real, Work};

    /// Numbers a thread should have to read: with fewer, waking it costs more than it saves.
    const PART: usize = 1 << 16;
    /// Upper limit of the parts per thread. More than one, so that a thread that wakes late takes fewer.
    const PARTS_PER_THREAD: usize = 8;
    /// How long the caller polls for its last parts before it blocks. Blocking and being woken takes about as long.
    const POLL: Duration = Duration::from_micros(100);

    /// The number of parts, or `None` if splitting does not pay.
    pub(super) fn worth_splitting(batch: &Batch<'_>, work: Work) -> Option<usize> {
        let threads = rayon::current_num_threads();
        let most = (threads * PARTS_PER_THREAD).min(batch.sequences());
        let parts = (batch.tokens().saturating_mul(work.per_token) / PART).min(most);
        (threads > 1 && parts > 1).then_some(parts)
    }

    /// Consecutive sequences with their slices of the outputs and of the reports.
    pub(super) struct Slices<'o, R, P, const OUTS: usize> {
        pub(super) sequences: Range<usize>,
        pub(super) outputs: [&'o mut [R]; OUTS],
        pub(super) reports: &'o mut [P],
    }

    pub(super) struct Task<'t, 'a, F> {
        pub(super) batch: &'t Batch<'a>,
        pub(super) work: Work,
        pub(super) run: &'t F,
        /// Minimum tokens per part.
        pub(super) least: usize,
    }

    impl<'a, F> Task<'_, 'a, F> {
        /// Runs all parts, at most `parts` of them, on the current pool. The caller starts at once, while other threads
        /// are being woken; each thread claims the next part until none is left.
        pub(super) fn share<R: Real, P: Send, const OUTS: usize>(&self, all: Slices<'_, R, P, OUTS>, parts: usize)
        where
            F: Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
        {
            let unclaimed = Mutex::new(all);
            // a function of its own: in the condition of the loop the guard would live until the end of its body
            let claim = || self.claim(&mut unclaimed.lock().unwrap_or_else(PoisonError::into_inner));
            let work = || {
                while let Some(part) = claim() {
                    self.run(part);
                }
            };
            let helpers = rayon::current_num_threads().min(parts) - 1;
            let done = AtomicUsize::new(0);
            rayon::in_place_scope(|scope| {
                for _ in 0..helpers {
                    scope.spawn(|_| {
                        work();
                        done.fetch_add(1, Relaxed);
                    });
                }
                work();
                // all parts are claimed, the last ones are about to finish: poll before the end of the scope blocks
                let begin = Instant::now();
                while done.load(Relaxed) < helpers && begin.elapsed() < POLL {
                    hint::spin_loop();
                }
            });
        }

        fn run<R: Real, P, const OUTS: usize>(&self, part: Slices<'_, R, P, OUTS>)
        where
            F: Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
        {
            let Slices { sequences, outputs, reports } = part;
            let mut reports = reports.iter_mut();
            let mut report = |of_sequence| {
                if let Some(report) = reports.next() {
                    *report = of_sequence;
                }
            };
            let tokens = self.batch.first_token(sequences.start)..self.batch.first_token(sequences.end);
            (self.run)(&Part { batch: self.batch.part(sequences.clone()), sequences, tokens }, outputs, &mut report);
        }

        /// Takes the next part off the unclaimed rest of the batch.
        fn claim<'o, R, P, const OUTS: usize>(
            &self,
            unclaimed: &mut Slices<'o, R, P, OUTS>,
        ) -> Option<Slices<'o, R, P, OUTS>> {
            let Range { start, end } = unclaimed.sequences;
            if start == end {
                return None;
            }
            let first = self.batch.first_token(start);
            // large parts first, for fewer claims; small ones last, so that all threads finish together
            let left = self.batch.first_token(end) - first;
            let share = (left / (2 * rayon::current_num_threads())).max(self.least);
            let enough = |&sequence: &usize| self.batch.first_token(sequence) - first >= share;
            let middle = (start + 1..end).find(enough).unwrap_or(end);
            let tokens = self.batch.first_token(middle) - first;
            let halves = unclaimed.outputs.each_mut().map(|output| take(output).split_at_mut(tokens * self.work.width));
            let (reports, others) = take(&mut unclaimed.reports).split_at_mut(middle - start);
            let mut outputs = array::from_fn(|_| &mut [] as &mut [R]);
            for ((claimed, rest), (left, right)) in outputs.iter_mut().zip(&mut unclaimed.outputs).zip(halves) {
                (*claimed, *rest) = (left, right);
            }
            unclaimed.reports = others;
            unclaimed.sequences.start = middle;
            Some(Slices { sequences: start..middle, outputs, reports })
        }
    }
}
