//! Instruction sets. Most kernels are plain loops under [`multiversion`], which compiles them for the baseline of the
//! target, for AVX2 and for AVX-512; two places need explicit vectors. A copy changes speed, never bits: none may fuse
//! or reorder an operation. The only `unsafe` of the crate is here and in what the attribute writes.

use core::ops::{Add, Mul, Sub};

use crate::real::Real;

pub(crate) mod recursion;
pub(crate) mod vocab;

pub(crate) use tokenwise_macros::multiversion;

/// A number, or a vector of numbers that are computed side by side.
///
/// There is no constructor here. Those of vector types are `unsafe`, so that a vector exists only where the CPU has its
/// instructions: code that has a vector may use every operation on it, which is why these are safe.
pub(crate) trait Pack<R>: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// `x` in every lane of a vector like this one.
    fn splat(self, x: R) -> Self;
}

impl<R: Real> Pack<R> for R {
    #[inline(always)]
    fn splat(self, x: R) -> Self {
        x
    }
}

/// Whether the CPU has the AVX-512 extensions that the copies are compiled with (those of Skylake-X). False in a build
/// whose baseline has AVX2 but not AVX-512, because that baseline was chosen for a known machine.
#[cfg(all(feature = "std", target_arch = "x86_64", avx512))]
#[inline]
pub(crate) fn has_avx512() -> bool {
    (cfg!(target_feature = "avx512f") || !cfg!(target_feature = "avx2"))
        && std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl")
}
