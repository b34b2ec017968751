//! Why a call was refused, and the checks that every kernel begins with.

use core::fmt;

use crate::real::Real;

/// Why a call was refused. Nothing was written to the outputs.
///
/// Each variant names the parameter as the signature does, the place, and both numbers.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Error {
    /// A slice has the wrong number of entries.
    Length {
        /// The parameter.
        what: &'static str,
        /// Entries the other parameters ask for.
        expected: usize,
        /// Entries it has.
        got: usize,
    },
    /// The offsets of a packed layout do not start at 0 or go backwards.
    Offsets {
        /// Index into `cu_seqlens`.
        index: usize,
        /// The smallest value allowed there.
        at_least: u32,
        /// The value found.
        got: u32,
    },
    /// A token id is not in the vocabulary.
    TokenId {
        /// Index of the token slot.
        index: usize,
        /// The id found.
        id: u32,
        /// Size of the vocabulary.
        vocab: usize,
    },
    /// A group id is not dense: not below the number of sequences.
    Group {
        /// Index of the sequence.
        index: usize,
        /// The id found.
        id: u32,
        /// Number of sequences.
        sequences: usize,
    },
    /// One sequence is shorter than another parameter asks for.
    Sequence {
        /// The parameter.
        what: &'static str,
        /// Index of the sequence.
        index: usize,
        /// Positions it needs.
        at_least: usize,
        /// Positions it has.
        got: usize,
    },
    /// A number is outside its domain, or not finite.
    Config {
        /// The field.
        what: &'static str,
        /// The domain in words.
        must_be: &'static str,
        /// The value found.
        got: f64,
    },
    /// One entry of a per-sequence or per-token slice is outside its domain.
    Entry {
        /// The parameter.
        what: &'static str,
        /// Index of the entry.
        index: usize,
        /// The domain in words.
        must_be: &'static str,
        /// The value found.
        got: f64,
    },
    /// A mean over no kept token was asked for.
    EmptyMask,
    /// A statistic needs more kept entries than there are.
    TooFew {
        /// The statistic.
        what: &'static str,
        /// Kept entries it needs.
        needed: usize,
        /// Kept entries there are.
        got: usize,
    },
    /// A size does not fit into `usize` on this machine.
    Overflow {
        /// The product that overflowed.
        what: &'static str,
        /// Its two factors.
        factors: (usize, usize),
    },
}

/// The result of every kernel.
pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    /// A short stable name of the variant, for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Length { .. } => "length",
            Self::Offsets { .. } => "offsets",
            Self::TokenId { .. } => "token_id",
            Self::Group { .. } => "group",
            Self::Sequence { .. } => "sequence",
            Self::Config { .. } => "config",
            Self::Entry { .. } => "entry",
            Self::EmptyMask => "empty_mask",
            Self::TooFew { .. } => "too_few",
            Self::Overflow { .. } => "overflow",
        }
    }

    /// The parameter at fault, as the signature names it.
    pub const fn parameter(&self) -> &'static str {
        match self {
            Self::Length { what, .. }
            | Self::Config { what, .. }
            | Self::Entry { what, .. }
            | Self::Sequence { what, .. }
            | Self::TooFew { what, .. }
            | Self::Overflow { what, .. } => what,
            Self::Offsets { .. } => "cu_seqlens",
            Self::TokenId { .. } => "tokens",
            Self::Group { .. } => "groups",
            Self::EmptyMask => "mask",
        }
    }

    /// The index of the entry at fault, where there is one.
    pub const fn index(&self) -> Option<usize> {
        match self {
            Self::Offsets { index, .. }
            | Self::TokenId { index, .. }
            | Self::Group { index, .. }
            | Self::Sequence { index, .. }
            | Self::Entry { index, .. } => Some(*index),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { what, expected, got } => {
                write!(f, "{what}: expected {expected} entries, got {got}")
            }
            Self::Offsets { index: 0, at_least, got } => {
                write!(f, "cu_seqlens[0]: expected {at_least}, got {got}")
            }
            Self::Offsets { index, at_least, got } => {
                write!(f, "cu_seqlens[{index}]: expected at least {at_least}, got {got}")
            }
            Self::TokenId { index, id, vocab } => {
                write!(f, "tokens[{index}]: expected an id below the vocabulary size {vocab}, got {id}")
            }
            Self::Group { index, id, sequences } => {
                write!(f, "groups[{index}]: expected an id below {sequences}, the number of sequences, got {id}")
            }
            Self::Sequence { what, index, at_least, got } => {
                write!(f, "{what}[{index}]: expected at least {at_least} positions, got {got}")
            }
            Self::Config { what, must_be, got } => {
                write!(f, "{what}: must be {must_be}, got {got}")
            }
            Self::Entry { what, index, must_be, got } => {
                write!(f, "{what}[{index}]: must be {must_be}, got {got}")
            }
            Self::EmptyMask => f.write_str("mask: expected at least 1 kept token, got 0"),
            Self::TooFew { what, needed, got } => {
                write!(f, "{what}: needs at least {needed} kept entries, got {got}")
            }
            Self::Overflow { what, factors: (a, b) } => {
                write!(f, "{what}: {a} × {b} does not fit into a machine word")
            }
        }
    }
}

impl core::error::Error for Error {}

/// Refuses a slice whose length is not `expected`.
pub(crate) fn check_len<T>(what: &'static str, slice: &[T], expected: usize) -> Result<()> {
    check_count(what, slice.len(), expected)
}

/// Refuses a number of entries that is not `expected`.
pub(crate) fn check_count(what: &'static str, got: usize, expected: usize) -> Result<()> {
    if got == expected {
        Ok(())
    } else {
        Err(Error::Length { what, expected, got })
    }
}

/// Refuses a config number outside its domain. `inside` must be false for NaN.
pub(crate) fn check_config(what: &'static str, must_be: &'static str, got: f64, inside: bool) -> Result<()> {
    if inside {
        Ok(())
    } else {
        Err(Error::Config { what, must_be, got })
    }
}

/// Refuses anything but a number in `[0, 1]`: γ, λ and shares.
pub(crate) fn check_unit(what: &'static str, got: f64) -> Result<()> {
    check_config(what, "in [0, 1]", got, (0.0..=1.0).contains(&got))
}

/// Refuses finite config numbers that are infinite in the type they are rounded to.
pub(crate) fn check_range<R: Real>(what: &'static str, got: f64) -> Result<()> {
    check_config(what, R::FINITE, got, R::narrow(got).is_finite() || !got.is_finite())
}

/// Refuses negative and not-finite numbers.
pub(crate) fn check_not_negative<R: Real>(what: &'static str, got: f64) -> Result<()> {
    check_config(what, "finite and not negative", got, got.is_finite() && got >= 0.0)?;
    check_range::<R>(what, got)
}

/// Refuses everything but positive finite numbers, and those too small for their reciprocal to be finite.
pub(crate) fn check_positive<R: Real>(what: &'static str, got: f64) -> Result<()> {
    check_config(what, "finite and positive", got, got.is_finite() && got > 0.0)?;
    check_config(what, R::POSITIVE, got, R::narrow(got) >= R::NORMAL)?;
    check_range::<R>(what, got)
}

/// Refuses not-finite numbers.
pub(crate) fn check_finite<R: Real>(what: &'static str, got: f64) -> Result<()> {
    check_config(what, "finite", got, got.is_finite())?;
    check_range::<R>(what, got)
}

/// `a · b`, or the overflow as an error.
pub(crate) fn checked_size(what: &'static str, a: usize, b: usize) -> Result<usize> {
    a.checked_mul(b).map_or_else(|| Err(Error::Overflow { what, factors: (a, b) }), Ok)
}
