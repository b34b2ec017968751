//! Splits a batch into parts that run on threads (feature `rayon`).
//!
//! Sequences do not depend on each other, and what is summed over them is added in their order, whichever thread
//! computed it: the bits are the same for any number of threads. Without the feature there is one part, the whole
//! batch.

use core::ops::Range;

use crate::{layout::Batch, real::Real};

#[cfg(feature = "rayon")]
mod lend;
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
    if let Some(division) = threads::worth_splitting(batch, work) {
        return threads::Task { batch, work, run: &run, division }.in_order(outputs, &mut combine);
    }
    let _ = work;
    run(&Part { batch: *batch, sequences: 0..batch.sequences(), tokens: 0..batch.tokens() }, outputs, &mut combine);
}

#[cfg(feature = "rayon")]
pub(crate) mod threads {
    use core::{array, mem::take, ops::Range};
    use std::sync::{Mutex, OnceLock, PoisonError};

    use super::{lend::lend, Batch, Part, Real, Work};

    /// Numbers a thread should have to read: with fewer, waking it costs more than it saves.
    const PART: usize = if cfg!(miri) { 1 << 5 } else { 1 << 16 };
    /// Upper limit of the parts per thread. More than one, so that a thread that wakes late takes fewer.
    const PARTS_PER_THREAD: usize = 8;
    /// Upper limit of the memory for reports that wait for their turn, in bytes.
    pub(crate) const REPORTS: usize = if cfg!(miri) { 1 << 12 } else { 1 << 22 };

    static LIMIT: OnceLock<fn() -> usize> = OnceLock::new();

    /// Sets, once for the process, who says how many threads a formula may use, the calling one included.
    ///
    /// `limit` is asked on the calling thread whenever a batch is large enough to be split. If it says 1, the pool is
    /// neither used nor started: for an application that makes its pool late, or that forks, since the child of a
    /// `fork` has none of the threads of its pool. Returns whether this call set it, which only the first does.
    ///
    /// ```
    /// assert!(tokenwise::limit_threads(|| 2));
    /// assert!(!tokenwise::limit_threads(|| 1));
    /// ```
    pub fn limit_threads(limit: fn() -> usize) -> bool {
        LIMIT.set(limit).is_ok()
    }

    /// How a batch is divided.
    #[derive(Clone, Copy)]
    pub(super) struct Division {
        /// Threads that may work on it.
        threads: usize,
        /// Upper limit of the number of parts.
        parts: usize,
    }

    /// How to split, or `None` if that does not pay.
    pub(super) fn worth_splitting(batch: &Batch<'_>, work: Work) -> Option<Division> {
        let most = (batch.tokens().saturating_mul(work.per_token) / PART).min(batch.sequences());
        if most < 2 {
            return None;
        }
        let limit = LIMIT.get().map_or(usize::MAX, |limit| limit());
        if limit < 2 {
            return None;
        }
        // asked last: outside a pool the question starts the global one
        let threads = rayon::current_num_threads().min(limit);
        (threads > 1).then(|| Division { threads, parts: most.min(threads.saturating_mul(PARTS_PER_THREAD)) })
    }

    /// Consecutive sequences with their slices of the outputs and of the reports.
    struct Slices<'o, R, P, const OUTS: usize> {
        sequences: Range<usize>,
        outputs: [&'o mut [R]; OUTS],
        reports: &'o mut [P],
    }

    pub(super) struct Task<'t, 'a, F> {
        pub(super) batch: &'t Batch<'a>,
        pub(super) work: Work,
        pub(super) run: &'t F,
        pub(super) division: Division,
    }

    impl<'a, F> Task<'_, 'a, F> {
        /// Runs the batch section by section, so that the reports of many short sequences need little memory.
        pub(super) fn in_order<R: Real, P: Copy + Default + Send, const OUTS: usize>(
            &self,
            mut outputs: [&mut [R]; OUTS],
            combine: &mut dyn FnMut(P),
        ) where
            F: Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
        {
            let section = (REPORTS / size_of::<P>().max(1)).max(1);
            let mut reports = vec![P::default(); self.batch.sequences().min(section)];
            let mut start = 0;
            while start < self.batch.sequences() {
                let sequences = start..self.batch.sequences().min(start + section);
                let reports = &mut reports[..sequences.len()];
                reports.fill(P::default());
                let tokens = self.tokens(&sequences);
                start = sequences.end;
                self.share(Slices { sequences, outputs: self.split_off(&mut outputs, tokens), reports: &mut *reports });
                reports.iter().copied().for_each(&mut *combine);
            }
        }

        /// Runs all parts of a section on the current pool. The caller starts at once, while other threads are being
        /// woken; each thread claims the next part until none is left.
        fn share<R: Real, P: Send, const OUTS: usize>(&self, all: Slices<'_, R, P, OUTS>)
        where
            F: Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
        {
            let least = self.tokens(&all.sequences).div_ceil(self.division.parts);
            let unclaimed = Mutex::new(all);
            // a function of its own: in the condition of the loop the guard would live until the end of its body
            let claim = || self.claim(&mut unclaimed.lock().unwrap_or_else(PoisonError::into_inner), least);
            lend(self.division.threads.min(self.division.parts) - 1, &|| {
                while let Some(part) = claim() {
                    self.run(part);
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

        /// Takes the next part, of at least `least` tokens if there are as many, off the unclaimed rest.
        fn claim<'o, R, P, const OUTS: usize>(
            &self,
            unclaimed: &mut Slices<'o, R, P, OUTS>,
            least: usize,
        ) -> Option<Slices<'o, R, P, OUTS>> {
            let Range { start, end } = unclaimed.sequences;
            if start == end {
                return None;
            }
            // large parts first, for fewer claims; small ones last, so that all threads finish together
            let share = (self.tokens(&(start..end)) / (2 * self.division.threads)).max(least);
            // the first sequence before which there are enough tokens
            let (mut below, mut middle) = (start, end);
            while middle - below > 1 {
                let between = below + (middle - below) / 2;
                if self.tokens(&(start..between)) < share {
                    below = between;
                } else {
                    middle = between;
                }
            }
            let outputs = self.split_off(&mut unclaimed.outputs, self.tokens(&(start..middle)));
            let (reports, others) = take(&mut unclaimed.reports).split_at_mut(middle - start);
            unclaimed.reports = others;
            unclaimed.sequences.start = middle;
            Some(Slices { sequences: start..middle, outputs, reports })
        }

        /// Number of tokens of consecutive sequences.
        fn tokens(&self, sequences: &Range<usize>) -> usize {
            self.batch.first_token(sequences.end) - self.batch.first_token(sequences.start)
        }

        /// Takes the first `tokens` tokens off the outputs.
        fn split_off<'o, R, const OUTS: usize>(
            &self,
            outputs: &mut [&'o mut [R]; OUTS],
            tokens: usize,
        ) -> [&'o mut [R]; OUTS] {
            let mut taken = array::from_fn(|_| &mut [] as &mut [R]);
            for (taken, rest) in taken.iter_mut().zip(outputs) {
                (*taken, *rest) = take(rest).split_at_mut(tokens * self.work.width);
            }
            taken
        }
    }
}
