//! The functions beyond `+ − × ÷`: our own, so that their bits do not depend on the machine or the toolchain.
//!
//! `exp` and `ln` are branch-free, so a loop over an array of them is the lane form, with the same bits by construction.
//! `sqrt` is correctly rounded everywhere (IEEE 754) and comes from libm.

mod exp;
mod exp_remainder;
mod ln;
#[cfg(test)]
mod sweep_tests;

use crate::real::Real;

pub(crate) use exp::{exp_f32, exp_f64, exp_near_f32, exp_near_f64, NEAR_F32, NEAR_F64};
#[cfg(any(all(feature = "std", target_arch = "x86_64"), all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) use exp::{reduced_f32, NEAR_ORIGIN_F32, ROUNDER_F32};
pub(crate) use exp_remainder::exp_remainder;
pub(crate) use ln::{ln_f32, ln_f64};

/// `e^x`.
///
/// NaN → NaN, +inf → +inf, −inf → 0, ±0 → 1. Overflow gives +inf, underflow passes through the subnormals to 0.
#[cfg_attr(not(compact), inline(always))]
pub fn exp<R: Real>(x: R) -> R {
    x.own_exp()
}

/// The natural logarithm.
///
/// NaN → NaN, +inf → +inf, ±0 → −inf, negative → NaN, 1 → 0. Subnormal arguments are exact inputs like any other.
#[cfg_attr(not(compact), inline(always))]
pub fn ln<R: Real>(x: R) -> R {
    x.own_ln()
}

/// The square root, correctly rounded. Negative → NaN, −0 → −0.
#[cfg_attr(not(compact), inline(always))]
pub fn sqrt<R: Real>(x: R) -> R {
    x.own_sqrt()
}

/// `x` no lower than `low` and no higher than `high`; NaN stays NaN.
#[cfg_attr(not(compact), inline(always))]
pub(crate) fn clamp<R: Real>(x: R, low: R, high: R) -> R {
    let x = if x < low { low } else { x };
    if x > high {
        high
    } else {
        x
    }
}
