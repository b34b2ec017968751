//! Memory of results that is used again once Python has dropped them.
//!
//! Fresh pages from the operating system cost more than most formulas take to fill them. An output is written
//! everywhere, so that old contents do not matter.

use std::sync::{Mutex, PoisonError};

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
    /// A buffer of `len` entries, which may hold results of an earlier call.
    pub(crate) fn take(&self, len: usize) -> Option<Vec<R>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|buffer| buffer.len() >= len && buffer.len() / 2 <= len)?;
        let mut buffer = kept.swap_remove(place);
        buffer.truncate(len);
        Some(buffer)
    }

    fn keep(&self, buffer: Vec<R>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
