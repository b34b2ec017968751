//! Buffers of outputs that are kept from call to call: an output is written everywhere, so that filling a fresh buffer
//! with zeros is lost work.

use std::{cell::RefCell, thread::LocalKey};

use tokenwise_catalogue::{Array, Columns};

use crate::{
    error::Result,
    read::{zeros, Precision},
};

/// Buffers of one precision.
pub(crate) type Buffers<R> = RefCell<Vec<Vec<R>>>;
/// How many buffers are kept: `gae` has two outputs, hardly any formula more.
const COUNT: usize = 2;
/// The largest buffer that is kept, in entries: at most 24 MB are held in all.
const LARGEST: usize = 1 << 20;

thread_local! {
    static SINGLE: Buffers<f32> = const { RefCell::new(Vec::new()) };
    static DOUBLE: Buffers<f64> = const { RefCell::new(Vec::new()) };
}

/// The buffers of a precision.
pub(crate) trait Spare: Sized + 'static {
    const BUFFERS: &'static LocalKey<Buffers<Self>>;
}

impl Spare for f32 {
    const BUFFERS: &'static LocalKey<Buffers<Self>> = &SINGLE;
}

impl Spare for f64 {
    const BUFFERS: &'static LocalKey<Buffers<Self>> = &DOUBLE;
}

/// A buffer of `len` entries, which may hold results of an earlier call.
pub(crate) fn take<R: Precision>(len: usize) -> Result<Vec<R>> {
    let kept = R::BUFFERS.with_borrow_mut(|kept| {
        let place = kept.iter().position(|buffer| buffer.len() >= len)?;
        Some(kept.swap_remove(place))
    });
    match kept {
        Some(mut buffer) => {
            buffer.truncate(len);
            Ok(buffer)
        }
        None => zeros(len),
    }
}

/// Keeps the buffers of outputs for later calls.
pub(crate) fn keep<R: Precision>(outputs: Columns<R>) {
    R::BUFFERS.with_borrow_mut(|kept| {
        for (_, output) in outputs {
            match output {
                Array::Real(buffer) if buffer.len() <= LARGEST => kept.push(buffer),
                _ => (),
            }
        }
        // the latest are the likeliest to be of use again
        let surplus = kept.len().saturating_sub(COUNT);
        kept.drain(..surplus);
    });
}
