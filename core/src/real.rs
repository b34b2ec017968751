//! The number types: `f32` and `f64`, sealed.

use core::{
    fmt::{Debug, Display},
    ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign},
};

use crate::{math::Elementary, simd::vocab::VocabBlock};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}

    /// What the checks of configs know about the type.
    pub trait Range: Sized {
        /// What a finite number must be.
        const FINITE: &'static str;
        /// What a positive number must be.
        const POSITIVE: &'static str;
        /// The smallest positive number with all its digits. Its reciprocal is finite; those of the numbers below a
        /// quarter of it are not.
        const NORMAL: Self;
    }
    impl Range for f32 {
        const FINITE: &'static str = "within ±3.4028235e38, the range of f32";
        const POSITIVE: &'static str = "at least 1.1754944e-38, the smallest normal f32";
        const NORMAL: Self = Self::MIN_POSITIVE;
    }
    impl Range for f64 {
        const FINITE: &'static str = "within ±1.7976931348623157e308, the range of f64";
        const POSITIVE: &'static str = "at least 2.2250738585072014e-308, the smallest normal f64";
        const NORMAL: Self = Self::MIN_POSITIVE;
    }
}
use sealed::Range;
pub(crate) use sealed::Sealed;

/// A number a formula can be computed in: `f32` or `f64`.
///
/// Sealed: the bits of every result are promised, and that promise is made for these two types.
/// Config fields are `f64` whatever the type, and are rounded to it once, on entry.
pub trait Real:
    Sealed
    + Range
    + Elementary
    + VocabBlock
    + Copy
    + PartialOrd
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Default
    + Debug
    + Display
    + Send
    + Sync
    + 'static
{
    /// Rounds to the nearest value of this type.
    fn narrow(x: f64) -> Self;
    /// The same value as an `f64`; always exact.
    fn widen(self) -> f64;
    /// +0.
    fn zero() -> Self;
    /// 1.
    fn one() -> Self;
    /// A quiet NaN.
    fn nan() -> Self;
    /// +inf.
    fn infinity() -> Self;
    /// −inf.
    fn neg_infinity() -> Self;
    /// The distance from 1 to the next larger number.
    fn epsilon() -> Self;
    /// Whether this is NaN.
    fn is_nan(self) -> bool;
    /// Whether this is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// |x|; NaN stays NaN.
    fn abs(self) -> Self;
}

macro_rules! real {
    ($type:ident, $bits:ident) => {
        impl Real for $type {
            #[inline(always)]
            fn narrow(x: f64) -> Self {
                x as Self
            }
            #[inline(always)]
            fn widen(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn zero() -> Self {
                0.0
            }
            #[inline(always)]
            fn one() -> Self {
                1.0
            }
            #[inline(always)]
            fn nan() -> Self {
                Self::NAN
            }
            #[inline(always)]
            fn infinity() -> Self {
                Self::INFINITY
            }
            #[inline(always)]
            fn neg_infinity() -> Self {
                Self::NEG_INFINITY
            }
            #[inline(always)]
            fn epsilon() -> Self {
                Self::EPSILON
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                // the inherent function, which comes first
                <$type>::is_nan(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                // `core` has had this function only since Rust 1.85
                Self::from_bits(self.to_bits() & (<$bits>::MAX >> 1))
            }
        }
    };
}
real!(f32, u32);
real!(f64, u64);
