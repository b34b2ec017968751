//! Lends borrowed work to the threads of a rayon pool without ever waiting for one that has not started.
//!
//! The scopes of rayon wait for every job they spawned, and a thread of a pool waits by running other jobs of that pool.
//! Both can deadlock a host that holds a lock while it calls a formula: the job that the waiting thread picks up, or the
//! job that keeps a helper from starting, may want the same lock. Here a helper that has not started by the time the
//! caller has finished is turned away, so the caller waits only for threads inside the work, which take no lock of the
//! host's, and it waits without running anything else.

use core::{
    any::Any,
    hint,
    mem::transmute,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use std::{
    panic::{catch_unwind, resume_unwind, AssertUnwindSafe},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

/// How long the caller polls for helpers before it blocks. Blocking and being woken takes about as long.
const POLL: Duration = Duration::from_micros(100);
/// Jobs per thread that may be queued and not started, over all calls. If the threads of a pool are busy for long, the
/// jobs of earlier calls pile up; more of them would find no thread either.
const QUEUED_PER_THREAD: usize = 4;

static QUEUED: AtomicUsize = AtomicUsize::new(0);

/// Runs `work` on this thread and on up to `helpers` threads of the current pool. Returns when this thread and all
/// helpers that had started are done.
pub(super) fn lend(helpers: usize, work: &(dyn Fn() + Sync)) {
    // SAFETY: the reference is used by `Loan::help` alone, inside an entry that `Loan::enter` grants while the loan is
    // open. `closing` ends the loan and waits until every entry is left, before this function returns or unwinds.
    #[allow(unsafe_code, reason = "jobs of a pool must be 'static; this work is, for as long as it is used")]
    let work = unsafe { transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(work) };
    let loan =
        Arc::new(Loan { work, state: Mutex::new(State { open: true, ..State::default() }), left: Condvar::new() });
    let closing = Closing(&loan);
    for _ in 0..helpers {
        if QUEUED.load(Relaxed) < QUEUED_PER_THREAD * rayon::current_num_threads() {
            let loan = Arc::clone(&loan);
            QUEUED.fetch_add(1, Relaxed);
            rayon::spawn(move || {
                QUEUED.fetch_sub(1, Relaxed);
                loan.help();
            });
        }
    }
    work();
    drop(closing);
    let panic = loan.state().panic.take();
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

struct Loan {
    work: &'static (dyn Fn() + Sync),
    state: Mutex<State>,
    /// Signalled when the last helper leaves.
    left: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether helpers may still enter.
    open: bool,
    /// Helpers that entered and have not left.
    inside: usize,
    panic: Option<Box<dyn Any + Send>>,
}

impl Loan {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the loan was still open.
    fn enter(&self) -> bool {
        let mut state = self.state();
        state.inside += usize::from(state.open);
        state.open
    }

    fn help(&self) {
        if !self.enter() {
            return;
        }
        // a formula does not panic, but if one did, the caller would wait for ever
        let result = catch_unwind(AssertUnwindSafe(self.work));
        let mut state = self.state();
        state.inside -= 1;
        state.panic = state.panic.take().or(result.err());
        drop(state);
        self.left.notify_one();
    }
}

/// Ends the loan when it is dropped, also by a panic of the caller's own work.
struct Closing<'a>(&'a Loan);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state().open = false;
        // the last parts are about to finish
        let begin = Instant::now();
        while self.0.state().inside > 0 && begin.elapsed() < POLL {
            hint::spin_loop();
        }
        let mut state = self.0.state();
        while state.inside > 0 {
            state = self.0.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
