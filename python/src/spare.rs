//! Memory of results that is used again once Python has dropped them.
//!
//! Fresh pages from the operating system cost more than most formulas take to fill them. An output is written
//! everywhere, so that old contents do not matter. Nobody waits for the lock, which a forked child may have copied in a
//! locked state: who does not get it takes fresh memory, or gives his back to the allocator.

use std::sync::{Mutex, MutexGuard, TryLockError};

use numpy::{ndarray::ArrayView1, Element, PyArray1};
use pyo3::prelude::*;

/// How many buffers are kept: `gae` has two outputs, hardly any formula more, and results overlap in a loop.
const COUNT: usize = 4;
/// The largest and smallest buffer that is kept, in entries.
const LARGEST: usize = 1 << 24;
const SMALLEST: usize = 1 << 12;

/// The buffers of one precision.
pub(crate) struct Spare<R>(Mutex<Vec<Vec<R>>>);

static SINGLE: Spare<f32> = Spare(Mutex::new(Vec::new()));
static DOUBLE: Spare<f64> = Spare(Mutex::new(Vec::new()));

impl<R> Spare<R> {
    fn buffers(&self) -> Option<MutexGuard<'_, Vec<Vec<R>>>> {
        match self.0.try_lock() {
            Ok(buffers) => Some(buffers),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// A buffer of `len` entries, which may hold results of an earlier call.
    pub(crate) fn take(&self, len: usize) -> Option<Vec<R>> {
        let mut kept = self.buffers()?;
        // the one that was dropped last is the likeliest to be in the cache
        let place = kept.iter().rposition(|buffer| buffer.len() >= len && buffer.len() / 2 <= len)?;
        let mut buffer = kept.remove(place);
        buffer.truncate(len);
        Some(buffer)
    }

    fn keep(&self, buffer: Vec<R>) {
        let Some(mut kept) = self.buffers() else { return };
        kept.push(buffer);
        // the latest are the likeliest to be of use again
        if kept.len() > COUNT {
            kept.remove(0);
        }
    }
}

/// `f32` and `f64`.
pub(crate) trait Float: tokenwise_catalogue::Number + Element {
    /// The buffers of this precision.
    const SPARE: &'static Spare<Self>;

    /// An array that owns this memory and gives it back.
    fn array(py: Python<'_>, memory: Vec<Self>) -> PyResult<Bound<'_, PyArray1<Self>>>;
}

macro_rules! memory {
    ($($name:ident $real:ty, $spare:ident;)*) => {$(
        /// Memory of a result, owned by its NumPy array.
        #[pyclass(frozen)]
        struct $name(Vec<$real>);

        impl Drop for $name {
            fn drop(&mut self) {
                $spare.keep(std::mem::take(&mut self.0));
            }
        }

        impl Float for $real {
            const SPARE: &'static Spare<Self> = &$spare;

            fn array(py: Python<'_>, memory: Vec<Self>) -> PyResult<Bound<'_, PyArray1<Self>>> {
                if !(SMALLEST..=LARGEST).contains(&memory.len()) {
                    return Ok(PyArray1::from_vec(py, memory));
                }
                let owner = Bound::new(py, $name(memory))?;
                let view = ArrayView1::from(owner.get().0.as_slice());
                // SAFETY: `owner` keeps the memory, which it never moves, resizes or hands out, as long as the array
                // lives; nobody else has a reference to it.
                Ok(unsafe { PyArray1::borrow_from_array(&view, owner.clone().into_any()) })
            }
        }
    )*};
}
memory! {
    SingleMemory f32, SINGLE;
    DoubleMemory f64, DOUBLE;
}
