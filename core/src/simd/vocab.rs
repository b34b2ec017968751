//! Explicit vectors for one block of a vocabulary row, where they beat the auto-vectorised loop: `f32` with AVX2,
//! AVX-512 or simd128. The operations and their order are those of the portable code in `policy::vocab_row`, so the
//! bits are the same.

#[cfg(any(all(feature = "std", target_arch = "x86_64"), all(target_arch = "wasm32", target_feature = "simd128")))]
mod kernels;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod x86;

use crate::reduce::LANES;

/// Entries per block: few enough that `f32` lanes add only 32 terms each.
pub(crate) const BLOCK: usize = 32 * LANES;

/// The parts of a vocabulary row that have explicit vectors for some types. Private, a supertrait of
/// [`Real`](crate::Real).
#[doc(hidden)]
pub trait VocabBlock: Sized {
    /// Σ e^{z−m} and Σ e^{z−m} (z − m) of a block in which every `z − m` is at least `NEAR`; `None` if the portable
    /// code has to do it.
    ///
    /// Memory at `ahead` is prefetched meanwhile.
    #[inline(always)]
    fn near_sums(_z: &[Self; BLOCK], _max: Self, _ahead: Ahead) -> Option<[Self; 2]> {
        None
    }

    /// The smallest and the largest entry of a block, ignoring NaN; `None` if the portable code has to do it.
    #[inline(always)]
    fn range(_z: &[Self; BLOCK]) -> Option<[Self; 2]> {
        None
    }
}

impl VocabBlock for f32 {
    #[inline(always)]
    fn near_sums(z: &[Self; BLOCK], max: Self, ahead: Ahead) -> Option<[Self; 2]> {
        near_sums(z, max, ahead)
    }

    #[inline(always)]
    fn range(z: &[Self; BLOCK]) -> Option<[Self; 2]> {
        range(z)
    }
}

/// The compiler's own vectors are as good for `f64`.
impl VocabBlock for f64 {}

/// What will be read soon: an address, and the distance to the next one to prefetch, in bytes.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(all(feature = "std", target_arch = "x86_64"), all(target_arch = "wasm32", target_feature = "simd128"))),
    allow(dead_code, reason = "only explicit vectors prefetch")
)]
pub struct Ahead {
    pub(crate) address: *const u8,
    pub(crate) step: usize,
}

/// Prefetches one address with every vector: the processor has few line-fill buffers, so many requests at once would
/// stall.
#[inline(always)]
#[allow(unsafe_code, reason = "calling a kernel after detecting what it needs")]
fn near_sums(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> Option<[f32; 2]> {
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
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    // SAFETY: a module that was compiled with simd128 runs only where there is simd128.
    return Some(unsafe { kernels::near::<wasm::Four>(z, max, ahead) });
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    {
        let _ = (z, max, ahead);
        None
    }
}

#[inline(always)]
#[allow(unsafe_code, reason = "calling a kernel after detecting what it needs")]
fn range(z: &[f32; BLOCK]) -> Option<[f32; 2]> {
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
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    // SAFETY: a module that was compiled with simd128 runs only where there is simd128.
    return Some(unsafe { kernels::range::<wasm::Four>(z) });
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    {
        let _ = z;
        None
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
        for round in 0..if cfg!(miri) { 10 } else { 200 } {
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
