//! A block of a vocabulary row with explicit vectors, where the compiler's own come out slower: `f32` with AVX2 or AVX-512. The
//! operations and their order are those of `policy::vocab_row`, so the bits are too.

use crate::policy::vocab_row::BLOCK;

/// What will be needed next: an address, and the bytes of a vector there.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(all(feature = "std", target_arch = "x86_64")),
    allow(dead_code, reason = "only vectors written by hand fetch")
)]
pub struct Ahead {
    pub(crate) address: *const u8,
    pub(crate) step: usize,
}

/// Σ e^{z−m} and Σ e^{z−m} (z − m) of a block in which no entry needs care; none where the plain form does. Meanwhile what will be needed
/// is fetched: a little with every vector, because more at once would have to wait.
#[inline(always)]
#[allow(unsafe_code, reason = "calling a kernel after detecting what it needs")]
pub(crate) fn near_sums(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> Option<[f32; 2]> {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    {
        #[cfg(avx512)]
        if super::has_avx512() {
            // SAFETY: the CPU has what the kernel requires.
            return Some(unsafe { x86::near_avx512(z, max, ahead) });
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2.
            return Some(unsafe { x86::near_avx2(z, max, ahead) });
        }
    }
    let _ = (z, max, ahead);
    None
}

/// The least and the largest entry; none where the plain form does. NaN is neither.
#[inline(always)]
#[allow(unsafe_code, reason = "calling a kernel after detecting what it needs")]
pub(crate) fn range(z: &[f32; BLOCK]) -> Option<[f32; 2]> {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    {
        #[cfg(avx512)]
        if super::has_avx512() {
            // SAFETY: the CPU has what the kernel requires.
            return Some(unsafe { x86::range_avx512(z) });
        }
        if std::is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has AVX2.
            return Some(unsafe { x86::range_avx2(z) });
        }
    }
    let _ = z;
    None
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "vectors")]
#[allow(unused_unsafe, reason = "newer compilers hold some of the instructions for safe")]
#[allow(clippy::incompatible_msrv, reason = "those of AVX-512 are behind cfg(avx512)")]
mod x86 {
    use core::{
        arch::x86_64::*,
        ops::{Add, Mul, Sub},
    };

    use super::{Ahead, BLOCK};
    use crate::{
        math::{reduced_f32, NEAR_ORIGIN_F32},
        recursion::Lanes,
        reduce::LANES,
    };

    /// [`LANES`] numbers.
    trait Vector: Lanes<f32> {
        fn load(from: &[f32; LANES]) -> Self;
        /// The first eight, and the others.
        fn halves(self) -> [__m256; 2];
        /// `self` where it is less, else `other`.
        fn least(self, other: Self) -> Self;
        /// `self` where it is larger, else `other`.
        fn largest(self, other: Self) -> Self;
        /// `self · 2^n`, given what `reduced_f32` says of n.
        fn times_power(self, rounded: Self) -> Self;
    }

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
        fn load(from: &[f32; LANES]) -> Self {
            // SAFETY: both halves lie in the array.
            unsafe { Self([_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))]) }
        }
        #[inline(always)]
        fn halves(self) -> [__m256; 2] {
            self.0
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
        fn load(from: &[f32; LANES]) -> Self {
            // SAFETY: the array is as long as the vector.
            Self(unsafe { _mm512_loadu_ps(from.as_ptr()) })
        }
        #[inline(always)]
        fn halves(self) -> [__m256; 2] {
            // SAFETY: as for the operations.
            unsafe {
                let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0));
                [_mm512_castps512_ps256(self.0), _mm256_castpd_ps(high)]
            }
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
            unsafe {
                let n = _mm512_sub_epi32(_mm512_castps_si512(rounded.0), _mm512_set1_epi32(NEAR_ORIGIN_F32 as i32));
                self * Self(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(n)))
            }
        }
    }

    /// The vectors of a block.
    const VECTORS: usize = BLOCK / LANES;

    /// A loop over them rather than an iterator: what the standard library calls is not compiled with these instructions.
    #[inline(always)]
    fn vector<V: Vector>(z: &[f32; BLOCK], k: usize) -> V {
        z[k * LANES..].first_chunk().map_or(V::all(0.0), V::load)
    }

    /// Joins the lanes as `reduce::tree` does: each with the one half as far again, until there is one.
    macro_rules! joined {
        ($vector:expr, $eight:ident, $four:ident, $one:ident) => {{
            let [low, high] = $vector.halves();
            // SAFETY: as for the operations; AVX is part of both.
            unsafe {
                let eight = $eight(high, low);
                let four = $four(_mm256_extractf128_ps::<1>(eight), _mm256_castps256_ps128(eight));
                let two = $four(_mm_movehl_ps(four, four), four);
                _mm_cvtss_f32($one(_mm_movehdup_ps(two), two))
            }
        }};
    }

    #[inline(always)]
    fn near<V: Vector>(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> [f32; 2] {
        let (max, mut sum, mut weighted) = (V::all(max), V::all(0.0), V::all(0.0));
        for k in 0..VECTORS {
            // SAFETY: the instruction is part of every x86-64 and may be given any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.address.wrapping_add(k * ahead.step).cast()) };
            let distance = vector::<V>(z, k) - max;
            let (mantissa, rounded) = reduced_f32(distance);
            let term = mantissa.times_power(rounded);
            sum = sum + term;
            weighted = weighted + term * distance;
        }
        // which of two numbers is added to the other does not matter
        [joined!(sum, _mm256_add_ps, _mm_add_ps, _mm_add_ss), joined!(weighted, _mm256_add_ps, _mm_add_ps, _mm_add_ss)]
    }

    #[inline(always)]
    fn range<V: Vector>(z: &[f32; BLOCK]) -> [f32; 2] {
        // twice as many lanes as elsewhere: even and odd vectors by themselves
        let (mut least, mut largest) = ([V::all(f32::INFINITY); 2], [V::all(f32::NEG_INFINITY); 2]);
        for k in (0..VECTORS).step_by(2) {
            let (even, odd) = (vector::<V>(z, k), vector::<V>(z, k + 1));
            least = [even.least(least[0]), odd.least(least[1])];
            largest = [even.largest(largest[0]), odd.largest(largest[1])];
        }
        let (least, largest) = (least[1].least(least[0]), largest[1].largest(largest[0]));
        [joined!(least, _mm256_min_ps, _mm_min_ps, _mm_min_ss), joined!(largest, _mm256_max_ps, _mm_max_ps, _mm_max_ss)]
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::vocab_row::plain_sums;

    #[test]
    fn explicit_vectors_have_the_bits_of_the_plain_form() {
        let mut state = 1_u32;
        let mut logits = [0.0_f32; BLOCK];
        for round in 0..200 {
            for logit in &mut logits {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *logit = (state >> 8) as f32 / (1 << 19) as f32 - 16.0;
            }
            logits[round] = [0.0, -0.0, f32::NAN, 15.5, -70.0][round % 5];
            let (mut least, mut largest) = (f32::INFINITY, f32::NEG_INFINITY);
            for &z in &logits {
                least = if z < least { z } else { least };
                largest = if z > largest { z } else { largest };
            }
            if let Some(range) = range(&logits) {
                assert_eq!(range, [least, largest]);
            }
            let plain = plain_sums(&logits, largest);
            let ahead = Ahead { address: logits.as_ptr().cast(), step: 64 };
            if let Some(sums) = near_sums(&logits, largest, ahead) {
                let bits = |x: f64| if x.is_nan() { 0 } else { x.to_bits() };
                assert_eq!(sums.map(|sum| bits(f64::from(sum))), plain.map(bits), "round {round}");
            }
        }
    }
}
