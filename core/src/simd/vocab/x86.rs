//! Sixteen numbers as two vectors of AVX2 or one of AVX-512.
#![allow(unsafe_code, reason = "intrinsics")]
#![allow(unused_unsafe, reason = "some intrinsics are safe since Rust 1.87")]
#![allow(clippy::incompatible_msrv, reason = "those of AVX-512 are behind cfg(avx512)")]

use core::{
    arch::x86_64::*,
    ops::{Add, Mul, Sub},
};

use super::{
    kernels::{near, range, Vector},
    Ahead, BLOCK,
};
#[cfg(avx512)]
use crate::math::ROUNDER_F32;
use crate::{math::NEAR_ORIGIN_F32, reduce::LANES, simd::Pack};

/// Reduces sixteen lanes to one in the order of `reduce::tree`: lane `l` with `l + 8`, then `+ 4`, `+ 2`, `+ 1`.
macro_rules! reduced {
    ($name:ident, $eight:ident, $four:ident, $one:ident) => {
        /// # Safety
        ///
        /// The CPU has AVX.
        #[inline(always)]
        unsafe fn $name([low, high]: [__m256; 2]) -> f32 {
            // SAFETY: the CPU has AVX.
            unsafe {
                let eight = $eight(high, low);
                let four = $four(_mm256_extractf128_ps::<1>(eight), _mm256_castps256_ps128(eight));
                let two = $four(_mm_movehl_ps(four, four), four);
                _mm_cvtss_f32($one(_mm_movehdup_ps(two), two))
            }
        }
    };
}
// the operands are the other way round than in `tree`, which changes no sum: addition is commutative
reduced!(sum, _mm256_add_ps, _mm_add_ps, _mm_add_ss);
reduced!(min, _mm256_min_ps, _mm_min_ps, _mm_min_ss);
reduced!(max, _mm256_max_ps, _mm_max_ps, _mm_max_ss);

macro_rules! operation {
    ($vector:ident, $trait:ident, $method:ident, |$a:ident, $b:ident| $body:expr) => {
        impl $trait for $vector {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                // SAFETY: a vector exists only where the CPU has its instructions.
                Self(unsafe { $body })
            }
        }
    };
}

/// Two vectors of AVX2.
///
/// Exists only where the CPU has AVX2: it is made by the `unsafe` constructors of [`Vector`] and by operations on
/// others.
#[derive(Clone, Copy)]
struct Two([__m256; 2]);
operation!(Two, Add, add, |a, b| [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]);
operation!(Two, Sub, sub, |a, b| [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])]);
operation!(Two, Mul, mul, |a, b| [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])]);

impl Pack<f32> for Two {
    #[inline(always)]
    fn splat(self, x: f32) -> Self {
        // SAFETY: `self` exists, so the CPU has AVX2; likewise below.
        unsafe { Self::broadcast(x) }
    }
}

impl Vector for Two {
    #[inline(always)]
    fn prefetch(address: *const u8) {
        prefetch(address);
    }
    #[inline(always)]
    unsafe fn load(from: &[f32; LANES]) -> Self {
        // SAFETY: the caller has AVX2; both halves lie in the array.
        unsafe { Self([_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))]) }
    }
    #[inline(always)]
    unsafe fn broadcast(x: f32) -> Self {
        // SAFETY: the caller has AVX2.
        Self([unsafe { _mm256_set1_ps(x) }; 2])
    }
    #[inline(always)]
    fn sum_lanes(self) -> f32 {
        // SAFETY: `self` exists.
        unsafe { sum(self.0) }
    }
    #[inline(always)]
    fn min_lane(self) -> f32 {
        // SAFETY: `self` exists.
        unsafe { min(self.0) }
    }
    #[inline(always)]
    fn max_lane(self) -> f32 {
        // SAFETY: `self` exists.
        unsafe { max(self.0) }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: `self` exists.
        unsafe { Self([_mm256_min_ps(self.0[0], other.0[0]), _mm256_min_ps(self.0[1], other.0[1])]) }
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: `self` exists.
        unsafe { Self([_mm256_max_ps(self.0[0], other.0[0]), _mm256_max_ps(self.0[1], other.0[1])]) }
    }
    #[inline(always)]
    fn times_power(self, rounded: Self) -> Self {
        // SAFETY: `self` exists.
        unsafe {
            let origin = _mm256_set1_epi32(NEAR_ORIGIN_F32 as i32);
            let power = |rounded| {
                let n = _mm256_sub_epi32(_mm256_castps_si256(rounded), origin);
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n))
            };
            self * Self([power(rounded.0[0]), power(rounded.0[1])])
        }
    }
}

/// One vector of AVX-512; exists only where the CPU has AVX-512F.
#[cfg(avx512)]
#[derive(Clone, Copy)]
struct One(__m512);
#[cfg(avx512)]
operation!(One, Add, add, |a, b| _mm512_add_ps(a, b));
#[cfg(avx512)]
operation!(One, Sub, sub, |a, b| _mm512_sub_ps(a, b));
#[cfg(avx512)]
operation!(One, Mul, mul, |a, b| _mm512_mul_ps(a, b));

#[cfg(avx512)]
impl One {
    /// The first eight lanes, and the others.
    #[inline(always)]
    fn halves(self) -> [__m256; 2] {
        // SAFETY: `self` exists.
        unsafe {
            let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0));
            [_mm512_castps512_ps256(self.0), _mm256_castpd_ps(high)]
        }
    }
}

#[cfg(avx512)]
impl Pack<f32> for One {
    #[inline(always)]
    fn splat(self, x: f32) -> Self {
        // SAFETY: `self` exists, so the CPU has AVX-512F; likewise below.
        unsafe { Self::broadcast(x) }
    }
}

#[cfg(avx512)]
impl Vector for One {
    #[inline(always)]
    fn prefetch(address: *const u8) {
        prefetch(address);
    }
    #[inline(always)]
    unsafe fn load(from: &[f32; LANES]) -> Self {
        // SAFETY: the caller has AVX-512F; the array is as long as the vector.
        Self(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    unsafe fn broadcast(x: f32) -> Self {
        // SAFETY: the caller has AVX-512F.
        Self(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    fn sum_lanes(self) -> f32 {
        // SAFETY: `self` exists.
        unsafe { sum(self.halves()) }
    }
    #[inline(always)]
    fn min_lane(self) -> f32 {
        // SAFETY: `self` exists.
        unsafe { min(self.halves()) }
    }
    #[inline(always)]
    fn max_lane(self) -> f32 {
        // SAFETY: `self` exists.
        unsafe { max(self.halves()) }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: `self` exists.
        Self(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: `self` exists.
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn times_power(self, rounded: Self) -> Self {
        // SAFETY: `self` exists.
        unsafe { Self(_mm512_scalef_ps(self.0, _mm512_sub_ps(rounded.0, _mm512_set1_ps(ROUNDER_F32)))) }
    }
}

#[inline(always)]
fn prefetch(address: *const u8) {
    // SAFETY: every x86-64 CPU has the instruction, and it accepts any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

/// # Safety
///
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn near_avx2(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> [f32; 2] {
    // SAFETY: as required of the caller.
    unsafe { near::<Two>(z, max, ahead) }
}

/// # Safety
///
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn range_avx2(z: &[f32; BLOCK]) -> [f32; 2] {
    // SAFETY: as required of the caller.
    unsafe { range::<Two>(z) }
}

/// # Safety
///
/// The CPU has AVX-512F.
#[cfg(avx512)]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn near_avx512(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> [f32; 2] {
    // SAFETY: as required of the caller.
    unsafe { near::<One>(z, max, ahead) }
}

/// # Safety
///
/// The CPU has AVX-512F.
#[cfg(avx512)]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn range_avx512(z: &[f32; BLOCK]) -> [f32; 2] {
    // SAFETY: as required of the caller.
    unsafe { range::<One>(z) }
}
