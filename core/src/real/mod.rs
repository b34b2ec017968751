//! The number types: `f32` and `f64`, sealed.

use core::fmt::{Debug, Display};
use num_traits::{float::FloatCore, NumAssign};

use crate::{
    math,
    policy::vocab_row::BLOCK,
    simd::{self, vocab::Ahead},
};

#[cfg(feature = "small")]
mod either;
#[cfg(feature = "small")]
pub use either::Either;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}
pub(crate) use sealed::Sealed;

/// A number a formula can be computed in: `f32` or `f64`.
///
/// Sealed: the bits of every result are promised, and that promise is made for these two types.
/// Config fields are `f64` whatever the type, and are rounded to it once, on entry.
pub trait Real: Sealed + FloatCore + NumAssign + Default + Debug + Display + Send + Sync + 'static {
    /// Rounds to the nearest value of this type.
    fn narrow(x: f64) -> Self;
    /// The same value as an `f64`; always exact.
    fn widen(self) -> f64;
    #[doc(hidden)]
    fn own_exp(self) -> Self;
    /// Whether code for this type has to be small rather than fast.
    #[doc(hidden)]
    const COMPACT: bool = false;
    /// The least argument of [`Real::own_exp_near`].
    #[doc(hidden)]
    fn near() -> Self;
    /// `own_exp` for arguments from [`Real::near`] to 0.
    #[doc(hidden)]
    fn own_exp_near(self) -> Self;
    #[doc(hidden)]
    fn own_ln(self) -> Self;
    #[doc(hidden)]
    fn own_sqrt(self) -> Self;
    /// The sums of a block of a vocabulary row, where there are vectors written for it.
    #[doc(hidden)]
    #[inline(always)]
    fn near_sums(_z: &[Self; BLOCK], _max: Self, _ahead: Ahead) -> Option<[Self; 2]> {
        None
    }
    /// The least and the largest entry of a block, likewise.
    #[doc(hidden)]
    #[inline(always)]
    fn range(_z: &[Self; BLOCK]) -> Option<[Self; 2]> {
        None
    }
}

impl Real for f32 {
    #[inline(always)]
    fn narrow(x: f64) -> Self {
        x as Self
    }
    #[inline(always)]
    fn widen(self) -> f64 {
        f64::from(self)
    }
    #[cfg_attr(not(compact), inline(always))]
    #[cfg_attr(compact, inline(never))]
    fn own_exp(self) -> Self {
        math::exp_f32(self)
    }
    #[inline(always)]
    fn near() -> Self {
        math::NEAR_F32
    }
    #[inline(always)]
    fn own_exp_near(self) -> Self {
        math::exp_near_f32(self)
    }
    #[cfg_attr(not(compact), inline(always))]
    #[cfg_attr(compact, inline(never))]
    fn own_ln(self) -> Self {
        math::ln_f32(self)
    }
    #[inline(always)]
    fn own_sqrt(self) -> Self {
        libm::sqrtf(self)
    }
    #[inline(always)]
    fn near_sums(z: &[Self; BLOCK], max: Self, ahead: Ahead) -> Option<[Self; 2]> {
        simd::vocab::near_sums(z, max, ahead)
    }
    #[inline(always)]
    fn range(z: &[Self; BLOCK]) -> Option<[Self; 2]> {
        simd::vocab::range_of(z)
    }
}

impl Real for f64 {
    #[inline(always)]
    fn narrow(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[cfg_attr(not(compact), inline(always))]
    #[cfg_attr(compact, inline(never))]
    fn own_exp(self) -> Self {
        math::exp_f64(self)
    }
    #[inline(always)]
    fn near() -> Self {
        math::NEAR_F64
    }
    #[inline(always)]
    fn own_exp_near(self) -> Self {
        math::exp_near_f64(self)
    }
    #[cfg_attr(not(compact), inline(always))]
    #[cfg_attr(compact, inline(never))]
    fn own_ln(self) -> Self {
        math::ln_f64(self)
    }
    #[inline(always)]
    fn own_sqrt(self) -> Self {
        libm::sqrt(self)
    }
}
