use super::{
    exp::{exp_f32, exp_f64, exp_near_f32, exp_near_f64, NEAR_F32, NEAR_F64},
    ln::{ln_f32, ln_f64},
};
use crate::real::Real;

/// `e^x`.
///
/// NaN → NaN, +inf → +inf, −inf → 0, ±0 → 1. Overflow gives +inf, underflow passes through the subnormals to 0.
#[inline(always)]
pub fn exp<R: Real>(x: R) -> R {
    x.own_exp()
}

/// `e^x` for `x` from `R::NEAR` to 0, or NaN: the bits of [`exp`] with fewer operations.
#[inline(always)]
pub(crate) fn exp_near<R: Real>(x: R) -> R {
    x.own_exp_near()
}

/// The natural logarithm.
///
/// NaN → NaN, +inf → +inf, ±0 → −inf, negative → NaN, 1 → 0. Subnormal arguments are exact inputs like any other.
#[inline(always)]
pub fn ln<R: Real>(x: R) -> R {
    x.own_ln()
}

/// The square root, correctly rounded. Negative → NaN, −0 → −0.
#[inline(always)]
pub fn sqrt<R: Real>(x: R) -> R {
    x.own_sqrt()
}

/// `x` clamped to the range from `low` to `high`; NaN stays NaN.
#[inline(always)]
pub(crate) fn clamp<R: Real>(x: R, low: R, high: R) -> R {
    let x = if x < low { low } else { x };
    if x > high {
        high
    } else {
        x
    }
}

/// The elementary functions of a number type. Private: callers use [`math::exp`](super::exp) and the other functions of
/// `math`.
#[doc(hidden)]
pub trait Elementary: Copy {
    /// The smallest argument of [`Self::own_exp_near`].
    const NEAR: Self;
    fn own_exp(self) -> Self;
    /// `own_exp` for arguments from [`Self::NEAR`] to 0, with the same bits and fewer operations.
    fn own_exp_near(self) -> Self;
    fn own_ln(self) -> Self;
    fn own_sqrt(self) -> Self;
}

macro_rules! elementary {
    ($type:ident, $near:ident, $exp:path, $exp_near:path, $ln:path, $sqrt:path) => {
        impl Elementary for $type {
            const NEAR: Self = $near;
            #[inline(always)]
            fn own_exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn own_exp_near(self) -> Self {
                $exp_near(self)
            }
            #[inline(always)]
            fn own_ln(self) -> Self {
                $ln(self)
            }
            #[inline(always)]
            fn own_sqrt(self) -> Self {
                $sqrt(self)
            }
        }
    };
}
elementary!(f32, NEAR_F32, exp_f32, exp_near_f32, ln_f32, libm::sqrtf);
elementary!(f64, NEAR_F64, exp_f64, exp_near_f64, ln_f64, libm::sqrt);
