//! The functions beyond `+ − × ÷`: our own, so that their bits do not depend on the machine or the toolchain.
//!
//! `exp` and `ln` are branch-free, so a loop over an array vectorises, with the same bits by construction. `sqrt` is
//! correctly rounded everywhere (IEEE 754) and comes from libm.

mod elementary;
mod exp;
mod exp_remainder;
mod ln;
#[cfg(test)]
mod tests;

pub(crate) use elementary::{clamp, exp_near, Elementary};
pub use elementary::{exp, ln, sqrt};
#[cfg(all(feature = "std", target_arch = "x86_64", avx512))]
pub(crate) use exp::ROUNDER_F32;
#[cfg(any(all(feature = "std", target_arch = "x86_64"), all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) use exp::{reduced_f32, NEAR_ORIGIN_F32};
pub(crate) use exp_remainder::{exp_minus_one, exp_remainder, near_zero, remainder_near_zero};
