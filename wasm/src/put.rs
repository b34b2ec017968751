//! Handing numbers to JavaScript, which names them.

use alloc::vec::Vec;

use tokenwise::Either;

use crate::{call::wide, js};

/// In the order in which the function's row names them.
#[inline(never)]
pub(crate) fn numbers(all: &[f64]) {
    for &number in all {
        js::put(number);
    }
}

/// A number, or `null`.
#[inline(never)]
pub(crate) fn known(number: Option<f64>) {
    match number {
        Some(number) => js::put(number),
        None => js::null(),
    }
}

/// Numbers that bring their names along.
pub(crate) fn entries(all: impl Iterator<Item = (&'static str, f64)>) {
    all.for_each(|(name, number)| js::entry(name, number));
}

/// An array whose length only this side knows.
pub(crate) fn reals(all: Vec<Either>) {
    js::reals(&wide(all));
}
