//! Sixteen numbers as two vectors of AVX2 or one of AVX-512.
#![allow(unsafe_code, reason = "vectors")]
#![allow(unused_unsafe, reason = "newer compilers hold some of the instructions for safe")]
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
use crate::{math::NEAR_ORIGIN_F32, recursion::Lanes, reduce::LANES};

/// Joins the lanes of two halves as `reduce::tree` does: each with the one half as far again, until there is one.
macro_rules! joined {
    ($name:ident, $eight:ident, $four:ident, $one:ident) => {
        #[inline(always)]
        fn $name([low, high]: [__m256; 2]) -> f32 {
            // SAFETY: as for the operations below; AVX is part of both.
            unsafe {
                let eight = $eight(high, low);
                let four = $four(_mm256_extractf128_ps::<1>(eight), _mm256_castps256_ps128(eight));
                let two = $four(_mm_movehl_ps(four, four), four);
                _mm_cvtss_f32($one(_mm_movehdup_ps(two), two))
            }
        }
    };
}
// which of two numbers is added to the other does not matter
joined!(sum, _mm256_add_ps, _mm_add_ps, _mm_add_ss);
joined!(least, _mm256_min_ps, _mm_min_ps, _mm_min_ss);
joined!(largest, _mm256_max_ps, _mm_max_ps, _mm_max_ss);

macro_rules! operation {
    ($vector:ident, $trait:ident, $method:ident, |$a:ident, $b:ident| $body:expr) => {
        impl $trait for $vector {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let ($a, $b) = (self.0, other.0);
                // SAFETY: a vector is made in kernels only that require what its instructions need.
                Self(unsafe { $body })
            }
        }
    };
}

/// Two of AVX2.
#[derive(Clone, Copy)]
struct Two([__m256; 2]);
operation!(Two, Add, add, |a, b| [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]);
operation!(Two, Sub, sub, |a, b| [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])]);
operation!(Two, Mul, mul, |a, b| [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])]);

impl Lanes<f32> for Two {
    #[inline(always)]
    fn all(x: f32) -> Self {
        // SAFETY: as for the operations, here and below.
        Self([unsafe { _mm256_set1_ps(x) }; 2])
    }
}

impl Vector for Two {
    #[inline(always)]
    fn fetch(address: *const u8) {
        fetch(address);
    }
    #[inline(always)]
    fn load(from: &[f32; LANES]) -> Self {
        // SAFETY: both halves lie in the array.
        unsafe { Self([_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))]) }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        sum(self.0)
    }
    #[inline(always)]
    fn least_of_all(self) -> f32 {
        least(self.0)
    }
    #[inline(always)]
    fn largest_of_all(self) -> f32 {
        largest(self.0)
    }
    #[inline(always)]
    fn least(self, other: Self) -> Self {
        // SAFETY: as for the operations.
        unsafe { Self([_mm256_min_ps(self.0[0], other.0[0]), _mm256_min_ps(self.0[1], other.0[1])]) }
    }
    #[inline(always)]
    fn largest(self, other: Self) -> Self {
        // SAFETY: as for the operations.
        unsafe { Self([_mm256_max_ps(self.0[0], other.0[0]), _mm256_max_ps(self.0[1], other.0[1])]) }
    }
    #[inline(always)]
    fn times_power(self, rounded: Self) -> Self {
        // SAFETY: as for the operations.
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

/// One of AVX-512.
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
    /// The first eight, and the others.
    #[inline(always)]
    fn halves(self) -> [__m256; 2] {
        // SAFETY: as for the operations.
        unsafe {
            let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0));
            [_mm512_castps512_ps256(self.0), _mm256_castpd_ps(high)]
        }
    }
}

#[cfg(avx512)]
impl Lanes<f32> for One {
    #[inline(always)]
    fn all(x: f32) -> Self {
        // SAFETY: as for the operations, here and below.
        Self(unsafe { _mm512_set1_ps(x) })
    }
}

#[cfg(avx512)]
impl Vector for One {
    #[inline(always)]
    fn fetch(address: *const u8) {
        fetch(address);
    }
    #[inline(always)]
    fn load(from: &[f32; LANES]) -> Self {
        // SAFETY: the array is as long as the vector.
        Self(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        sum(self.halves())
    }
    #[inline(always)]
    fn least_of_all(self) -> f32 {
        least(self.halves())
    }
    #[inline(always)]
    fn largest_of_all(self) -> f32 {
        largest(self.halves())
    }
    #[inline(always)]
    fn least(self, other: Self) -> Self {
        // SAFETY: as for the operations.
        Self(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn largest(self, other: Self) -> Self {
        // SAFETY: as for the operations.
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn times_power(self, rounded: Self) -> Self {
        // SAFETY: as for the operations.
        unsafe { Self(_mm512_scalef_ps(self.0, _mm512_sub_ps(rounded.0, _mm512_set1_ps(ROUNDER_F32)))) }
    }
}

/// Asks for memory before it is needed.
#[inline(always)]
fn fetch(address: *const u8) {
    // SAFETY: the instruction is part of every x86-64 and may be given any address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

/// # Safety
///
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn near_avx2(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> [f32; 2] {
    near::<Two>(z, max, ahead)
}

/// # Safety
///
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn range_avx2(z: &[f32; BLOCK]) -> [f32; 2] {
    range::<Two>(z)
}

/// # Safety
///
/// The CPU has AVX-512F.
#[cfg(avx512)]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn near_avx512(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> [f32; 2] {
    near::<One>(z, max, ahead)
}

/// # Safety
///
/// The CPU has AVX-512F.
#[cfg(avx512)]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn range_avx512(z: &[f32; BLOCK]) -> [f32; 2] {
    range::<One>(z)
}
