//! Why a call is refused, told to JavaScript, which throws a `TokenwiseError` with the fields of the core's error.

use tokenwise::Error;

use crate::js;

/// The result of every function here.
pub(crate) type Result<T = ()> = tokenwise::Result<T>;

/// Tells the core's reason.
#[inline(never)]
pub(crate) fn refuse(error: &Error) {
    let (mut words, mut more) = ("", 0.0);
    let (expected, got) = match *error {
        Error::Length { expected, got, .. } => (expected as f64, got as f64),
        Error::Offsets { at_least, got, .. } => (at_least.into(), got.into()),
        Error::TokenId { id, vocab, .. } => (vocab as f64, id.into()),
        Error::Group { id, sequences, .. } => (sequences as f64, id.into()),
        Error::Sequence { at_least, got, .. } => (at_least as f64, got as f64),
        Error::Config { must_be, got, .. } | Error::Entry { must_be, got, .. } => {
            words = must_be;
            (0.0, got)
        }
        Error::EmptyMask => (1.0, 0.0),
        Error::TooFew { needed, got, .. } => (needed as f64, got as f64),
        Error::Overflow { factors: (a, b), .. } => {
            more = b as f64;
            (0.0, a as f64)
        }
        _ => (0.0, 0.0),
    };
    let index = error.index().map_or(-1.0, |index| index as f64);
    js::refuse(error.code(), error.parameter(), index, words, expected, got, more);
}

/// A reason of our own. Where code has to be small, the core has its reasons in boxes.
#[cfg(feature = "full")]
#[allow(clippy::useless_conversion, reason = "elsewhere they are in none")]
pub(crate) fn refused<T>(error: Error) -> Result<T> {
    Err(error.into())
}

/// More memory than there is: code `memory`.
#[cold]
#[inline(never)]
pub(crate) fn no_memory(entries: usize) {
    js::refuse("memory", "memory", -1.0, "room for the arrays", 0.0, entries as f64, 0.0);
}
