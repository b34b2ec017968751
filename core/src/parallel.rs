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

impl Part<'_> {
    /// Its part of a slice with one entry per token. A small module has but one part, the whole.
    #[inline(always)]
    pub(crate) fn of<'s, T>(&self, tokens: &'s [T]) -> &'s [T] {
        self.rows_of(tokens, 1)
    }

    /// The same of a slice with `width` entries per token.
    #[inline(always)]
    pub(crate) fn rows_of<'s, T>(&self, rows: &'s [T], width: usize) -> &'s [T] {
        if cfg!(compact) {
            rows
        } else {
            &rows[self.tokens.start * width..self.tokens.end * width]
        }
    }
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
#[cfg_attr(compact, inline(always))]
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
        let rest = threads::Rest { rows: 0..batch.sequences(), outputs, reports: &mut reports };
        threads::Task { batch, each, run: &run, tokens: batch.tokens().div_ceil(parts) }.share(rest, parts);
        return reports.into_iter().for_each(combine);
    }
    let _ = each;
    run(&Part { batch: *batch, rows: 0..batch.sequences(), tokens: 0..batch.tokens() }, outputs, &mut combine);
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

    use super::{Batch, Each, Part, Real};

    /// Numbers that one thread should have to read: with fewer, waking the others costs more than they save.
    const PART: usize = 1 << 16;
    /// The most parts a thread gets on average: one that is late has fewer.
    const PARTS_EACH: usize = 8;
    /// How long a thread looks for more to do before it sleeps. Waking it takes about as long, and one formula follows another.
    const AWAKE: Duration = Duration::from_micros(100);

    /// Into how many parts, if into any.
    pub(super) fn worth_splitting(batch: &Batch<'_>, each: Each) -> Option<usize> {
        let threads = rayon::current_num_threads();
        let parts = (batch.tokens().saturating_mul(each.work) / PART).min(threads * PARTS_EACH).min(batch.sequences());
        (threads > 1 && parts > 1).then_some(parts)
    }

    /// Keeps the calling thread of the pool from sleeping for a while; it does whatever comes.
    fn stay_awake() {
        static WAITING: AtomicUsize = AtomicUsize::new(0);
        if WAITING.fetch_add(1, Relaxed) + 1 >= rayon::current_num_threads() {
            WAITING.fetch_sub(1, Relaxed);
            return;
        }
        rayon::spawn(|| {
            let mut idle = Instant::now();
            while idle.elapsed() < AWAKE {
                if rayon::yield_now() == Some(rayon::Yield::Executed) {
                    idle = Instant::now();
                }
                hint::spin_loop();
            }
            WAITING.fetch_sub(1, Relaxed);
        });
    }

    /// What nobody has taken yet.
    pub(super) struct Rest<'o, R, P, const OUTS: usize> {
        pub(super) rows: Range<usize>,
        pub(super) outputs: [&'o mut [R]; OUTS],
        pub(super) reports: &'o mut [P],
    }

    pub(super) struct Task<'t, 'a, F> {
        pub(super) batch: &'t Batch<'a>,
        pub(super) each: Each,
        pub(super) run: &'t F,
        /// About as many in a part, or more.
        pub(super) tokens: usize,
    }

    impl<'a, F> Task<'_, 'a, F> {
        /// The caller begins at once, while others are still being woken; whoever is free takes the next of at most `parts`.
        pub(super) fn share<R: Real, P: Send, const OUTS: usize>(&self, rest: Rest<'_, R, P, OUTS>, parts: usize)
        where
            F: Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
        {
            let rest = Mutex::new(rest);
            // its own function: in the head of the loop the lock would be held while the part is worked on
            let next = || self.next(&mut rest.lock().unwrap_or_else(PoisonError::into_inner));
            let work = || {
                while let Some(mine) = next() {
                    self.run(mine);
                }
            };
            let others = rayon::current_num_threads().min(parts) - 1;
            let done = AtomicUsize::new(0);
            rayon::in_place_scope(|scope| {
                for _ in 0..others {
                    scope.spawn(|_| {
                        work();
                        done.fetch_add(1, Relaxed);
                        stay_awake();
                    });
                }
                work();
                // the scope would sleep until the last one is done, which is soon
                let begin = Instant::now();
                while done.load(Relaxed) < others && begin.elapsed() < AWAKE {
                    hint::spin_loop();
                }
            });
        }

        fn run<R: Real, P, const OUTS: usize>(&self, mine: Rest<'_, R, P, OUTS>)
        where
            F: Fn(&Part<'a>, [&mut [R]; OUTS], &mut dyn FnMut(P)) + Sync,
        {
            let Rest { rows, outputs, reports } = mine;
            let mut reports = reports.iter_mut();
            let mut report = |of_row| {
                if let Some(report) = reports.next() {
                    *report = of_row;
                }
            };
            let tokens = self.batch.first_token(rows.start)..self.batch.first_token(rows.end);
            (self.run)(&Part { batch: self.batch.part(rows.clone()), rows, tokens }, outputs, &mut report);
        }

        /// Takes the next part, if there is one.
        fn next<'o, R, P, const OUTS: usize>(&self, rest: &mut Rest<'o, R, P, OUTS>) -> Option<Rest<'o, R, P, OUTS>> {
            let Range { start, end } = rest.rows;
            if start == end {
                return None;
            }
            let first = self.batch.first_token(start);
            // large parts first, which cost less; small ones at the end, so that all finish together
            let left = self.batch.first_token(end) - first;
            let share = (left / (2 * rayon::current_num_threads())).max(self.tokens);
            let enough = |&row: &usize| self.batch.first_token(row) - first >= share;
            let middle = (start + 1..end).find(enough).unwrap_or(end);
            let tokens = self.batch.first_token(middle) - first;
            let halves = rest.outputs.each_mut().map(|output| take(output).split_at_mut(tokens * self.each.width));
            let (reports, others) = take(&mut rest.reports).split_at_mut(middle - start);
            let mut outputs = array::from_fn(|_| &mut [] as &mut [R]);
            for ((mine, rest), (left, right)) in outputs.iter_mut().zip(&mut rest.outputs).zip(halves) {
                (*mine, *rest) = (left, right);
            }
            rest.reports = others;
            rest.rows.start = middle;
            Some(Rest { rows: start..middle, outputs, reports })
        }
    }
}

#[cfg(test)]
#[cfg(feature = "rayon")]
#[path = "parallel_tests.rs"]
mod tests;
