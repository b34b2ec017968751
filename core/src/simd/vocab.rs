//! A block of a vocabulary row with explicit vectors, where the compiler's own come out slower: `f32` with AVX2, AVX-512 or simd128.
//! The operations and their order are those of `policy::vocab_row`, so the bits are too.

#[cfg(any(all(feature = "std", target_arch = "x86_64"), all(target_arch = "wasm32", target_feature = "simd128")))]
mod kernels;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wasm;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
mod x86;

use crate::policy::vocab_row::BLOCK;

/// What will be needed next: an address, and the bytes of a vector there.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(all(feature = "std", target_arch = "x86_64"), all(target_arch = "wasm32", target_feature = "simd128"))),
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
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    return Some(kernels::near::<wasm::Four>(z, max, ahead));
    #[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
    {
        let _ = (z, max, ahead);
        None
    }
}

/// The least and the largest entry; none where the plain form does. NaN is neither.
#[inline(always)]
#[allow(unsafe_code, reason = "calling a kernel after detecting what it needs")]
pub(crate) fn range_of(z: &[f32; BLOCK]) -> Option<[f32; 2]> {
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
    return Some(kernels::range::<wasm::Four>(z));
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
            if let Some(range) = range_of(&logits) {
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
