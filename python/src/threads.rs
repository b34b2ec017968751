//! Threads for large batches, which survive `fork`.
//!
//! The pool is started by the first large call and belongs to its process. A forked child has none of its threads, and
//! may have copied one of its locks in a locked state: there, calls run on their own thread and touch no pool. Nothing
//! here waits for another thread, so that a child may be forked at any moment.

use std::{
    env, process,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
    thread,
};

use pyo3::prelude::*;
use tokenwise::limit_threads;

use crate::error::wrong;

/// Threads that a call uses unless it is told otherwise: formulas over tokens are bound by memory, which more seldom
/// make faster.
const MOST: usize = 16;

/// The process whose pool it is, 0 if there is none yet.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The threads of the pool, 0 until it has been started.
static POOL: AtomicUsize = AtomicUsize::new(0);
/// What the caller asked for, 0 if nothing.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Makes formulas ask for their threads.
pub(crate) fn init() {
    limit_threads(available);
}

/// The threads of a call on a large batch: 1 in a child of the process that has the pool, and while another thread
/// starts it.
fn available() -> usize {
    let limit = limit();
    if limit == 1 {
        return 1;
    }
    let process = process::id();
    match PROCESS.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => start(),
        Err(owner) if owner != process => return 1,
        Err(_) => (),
    }
    limit.min(POOL.load(Ordering::Acquire)).max(1)
}

/// As many threads as there are processors: a limit may be raised later, a pool not.
fn start() {
    let threads = processors();
    let name = |index| format!("tokenwise-{index}");
    // refused where no more threads may be made; then there is no pool
    if rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build_global().is_ok() {
        POOL.store(threads, Ordering::Release);
    }
}

/// What this process may use, by its affinity and its quota.
fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn limit() -> usize {
    match ASKED.load(Ordering::Relaxed) {
        0 => {
            let limit = ["TOKENWISE_NUM_THREADS", "OMP_NUM_THREADS"].iter().find_map(|name| number(name));
            let limit = limit.unwrap_or(MOST).min(processors());
            ASKED.store(limit, Ordering::Relaxed);
            limit
        }
        asked => asked,
    }
}

/// A count in the environment. OpenMP has lists too (`4,2`), one number per level of nesting.
fn number(name: &str) -> Option<usize> {
    let text = env::var(name).ok()?;
    text.split(',').next()?.trim().parse().ok().filter(|threads| *threads > 0)
}

/// How many threads a call on a large batch may use.
#[pyfunction]
pub(crate) fn get_num_threads() -> usize {
    limit()
}

/// Sets how many threads a call on a large batch may use; more than there are processors are not used.
#[pyfunction]
pub(crate) fn set_num_threads(py: Python<'_>, threads: isize) -> PyResult<()> {
    match usize::try_from(threads) {
        Ok(threads) if threads > 0 => {
            ASKED.store(threads.min(processors()), Ordering::Relaxed);
            Ok(())
        }
        _ => Err(wrong(py, "entry", "threads", "at least 1", &threads.to_string())),
    }
}
