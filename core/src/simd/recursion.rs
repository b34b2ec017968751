//! Recursions over up to eight sequences side by side. Blocks of eight tokens by eight sequences are transposed in
//! registers, so that a vector holds one token of each sequence.
//!
//! `f32` with AVX2 only; elsewhere this does nothing and the caller's scalar code does everything, with the same bits.
//! A finished sequence is replaced by the next one, so lengths may differ.

use crate::{
    real::Real,
    recursion::{Cursor, Recursion},
};

/// Sequences side by side, and tokens per block.
pub(crate) const SIDE: usize = 8;

/// Callback: finishes the given sequence (fewer than [`SIDE`] tokens left), if any, and returns the next one to start.
pub(crate) type Replace<'r, R, const OUTS: usize, const STATE: usize> =
    &'r mut dyn FnMut(Option<Cursor<R, STATE>>, &mut [&mut [R]; OUTS]) -> Option<Cursor<R, STATE>>;

/// Runs the sequences that `replace` supplies while there are at least two; returns the unfinished ones.
#[inline(always)]
#[allow(unsafe_code, reason = "calling the AVX2 kernel after detecting AVX2")]
pub(crate) fn side_by_side<R: Real, F, const INS: usize, const OUTS: usize, const STATE: usize>(
    formula: F,
    inputs: [&[R]; INS],
    keep: &[bool],
    outputs: &mut [&mut [R]; OUTS],
    replace: Replace<'_, R, OUTS, STATE>,
) -> [Option<Cursor<R, STATE>>; SIDE]
where
    F: Recursion<R, INS, OUTS, STATE>,
{
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    if core::any::TypeId::of::<R>() == core::any::TypeId::of::<f32>() && std::is_x86_feature_detected!("avx2") {
        // SAFETY: the CPU has AVX2, and `R` is `f32`.
        return unsafe { avx2::run(formula, inputs, keep, outputs, replace) };
    }
    let _ = (formula, inputs, keep, outputs, replace);
    [None; SIDE]
}

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "intrinsics")]
#[allow(unused_unsafe, reason = "some intrinsics are safe since Rust 1.87")]
mod avx2 {
    use core::{
        arch::x86_64::*,
        ops::{Add, Mul, Sub},
    };

    use super::{Cursor, Real, Recursion, Replace, SIDE};
    use crate::simd::Pack;

    /// Eight `true` in the bytes of a word.
    const KEPT: u64 = 0x0101_0101_0101_0101;

    /// Prefetch distance in tokens. Explicit, because the hardware prefetcher does not follow this many streams at
    /// once.
    const AHEAD: usize = 48;

    /// One number of each of eight sequences. Exists only where the CPU has AVX2: `octets`, which requires it, makes
    /// the first ones.
    #[derive(Clone, Copy)]
    struct Eight(__m256);

    impl<R: Real> Pack<R> for Eight {
        #[inline(always)]
        fn splat(self, x: R) -> Self {
            // `x` is an `f32` in `run`
            // SAFETY: `self` exists, so the CPU has AVX2.
            Self(unsafe { _mm256_set1_ps(x.widen() as f32) })
        }
    }

    macro_rules! operation {
        ($trait:ident, $method:ident, $instruction:ident) => {
            impl $trait for Eight {
                type Output = Self;
                #[inline(always)]
                fn $method(self, other: Self) -> Self {
                    // SAFETY: `self` exists, so the CPU has AVX2.
                    Self(unsafe { $instruction(self.0, other.0) })
                }
            }
        };
    }
    operation!(Add, add, _mm256_add_ps);
    operation!(Sub, sub, _mm256_sub_ps);
    operation!(Mul, mul, _mm256_mul_ps);

    /// # Safety
    ///
    /// The CPU has AVX2; `R` is `f32`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn run<R: Real, F, const INS: usize, const OUTS: usize, const STATE: usize>(
        formula: F,
        inputs: [&[R]; INS],
        keep: &[bool],
        outputs: &mut [&mut [R]; OUTS],
        replace: Replace<'_, R, OUTS, STATE>,
    ) -> [Option<Cursor<R, STATE>>; SIDE]
    where
        F: Recursion<R, INS, OUTS, STATE>,
    {
        let mut cursors = [None; SIDE];
        loop {
            for cursor in &mut cursors {
                while cursor.map_or(true, |cursor: Cursor<R, STATE>| cursor.left < SIDE) {
                    *cursor = replace(cursor.take(), outputs);
                    if cursor.is_none() {
                        break;
                    }
                }
            }
            let mut lanes = [Cursor { start: 0, left: usize::MAX, next: [R::zero(); STATE] }; SIDE];
            let mut count = 0;
            for cursor in cursors.iter().flatten() {
                lanes[count] = *cursor;
                count += 1;
            }
            // one sequence alone gains nothing
            if count < 2 {
                return cursors;
            }
            // near the end there are fewer than eight: the other lanes repeat the first one and are not stored
            for lane in count..SIDE {
                lanes[lane] = lanes[0];
            }
            // SAFETY: as required of the caller.
            let all_fit = unsafe { octets(formula, inputs, keep, outputs, &mut lanes, count) };
            cursors = [None; SIDE];
            for lane in 0..count {
                cursors[lane] = Some(lanes[lane]);
            }
            if !all_fit {
                return cursors;
            }
        }
    }

    /// As many blocks of eight tokens as the shortest sequence has. Does nothing and returns `false` if a sequence is
    /// not inside the slices. Only the first `count` sequences are written.
    ///
    /// # Safety
    ///
    /// As [`run`].
    #[target_feature(enable = "avx2")]
    unsafe fn octets<R: Real, F, const INS: usize, const OUTS: usize, const STATE: usize>(
        formula: F,
        inputs: [&[R]; INS],
        keep: &[bool],
        outputs: &mut [&mut [R]; OUTS],
        lanes: &mut [Cursor<R, STATE>; SIDE],
        count: usize,
    ) -> bool
    where
        F: Recursion<R, INS, OUTS, STATE>,
    {
        // loops rather than iterator adapters, which are not always compiled with AVX2
        let (mut octets, mut end) = (usize::MAX, [0; SIDE]);
        let mut next = [[R::zero(); SIDE]; STATE];
        for (k, lane) in lanes.iter().enumerate() {
            octets = octets.min(lane.left / SIDE);
            end[k] = lane.start + lane.left;
            for (next, &of_lane) in next.iter_mut().zip(&lane.next) {
                next[k] = of_lane;
            }
            // the bounds check for everything that is read and written below
            let slots = lane.start..end[k];
            let fits = keep.get(slots.clone()).is_some()
                && inputs.iter().all(|input| input.get(slots.clone()).is_some())
                && outputs.iter().all(|output| output.get(slots.clone()).is_some());
            if !fits {
                return false;
            }
        }
        // SAFETY: the CPU has AVX2; `R` is `f32`; every block lies between the start and the end of its sequence, which
        // were checked above.
        unsafe {
            let zero = _mm256_setzero_ps();
            let mut state = [Eight(zero); STATE];
            for s in 0..STATE {
                state[s] = Eight(_mm256_loadu_ps(next[s].as_ptr().cast()));
            }
            for _ in 0..octets {
                let (mut columns, mut results) = ([[zero; SIDE]; INS], [[zero; SIDE]; OUTS]);
                let (mut masks, mut kept_by_all) = ([0; SIDE], KEPT);
                for k in 0..SIDE {
                    end[k] -= SIDE;
                    masks[k] = keep.as_ptr().add(end[k]).cast::<u64>().read_unaligned();
                    kept_by_all &= masks[k];
                    for i in 0..INS {
                        columns[i][k] = _mm256_loadu_ps(inputs[i].as_ptr().add(end[k]).cast());
                        let later = inputs[i].as_ptr().wrapping_add(end[k]).wrapping_sub(AHEAD);
                        _mm_prefetch::<_MM_HINT_T0>(later.cast());
                    }
                    for output in outputs.iter() {
                        let later = output.as_ptr().wrapping_add(end[k]).wrapping_sub(AHEAD);
                        _mm_prefetch::<_MM_HINT_ET0>(later.cast());
                    }
                }
                for column in &mut columns {
                    *column = transpose(*column);
                }
                if kept_by_all == KEPT {
                    for t in (0..SIDE).rev() {
                        let mut token = [Eight(zero); INS];
                        for i in 0..INS {
                            token[i] = Eight(columns[i][t]);
                        }
                        let (out, after) = formula.kept(token, state);
                        state = after;
                        for o in 0..OUTS {
                            results[o][t] = out[o].0;
                        }
                    }
                } else {
                    let masks = transpose_masks(masks);
                    for t in (0..SIDE).rev() {
                        let mut token = [Eight(zero); INS];
                        for i in 0..INS {
                            token[i] = Eight(columns[i][t]);
                        }
                        let (out, after) = formula.kept(token, state);
                        for s in 0..STATE {
                            state[s] = Eight(_mm256_blendv_ps(state[s].0, after[s].0, masks[t]));
                        }
                        for o in 0..OUTS {
                            results[o][t] = _mm256_and_ps(out[o].0, masks[t]);
                        }
                    }
                }
                for o in 0..OUTS {
                    let result = transpose(results[o]);
                    for k in 0..count {
                        _mm256_storeu_ps(outputs[o].as_mut_ptr().add(end[k]).cast(), result[k]);
                    }
                }
            }
            for s in 0..STATE {
                _mm256_storeu_ps(next[s].as_mut_ptr().cast(), state[s].0);
            }
        }
        for (k, lane) in lanes.iter_mut().enumerate() {
            lane.left -= octets * SIDE;
            for (of_lane, next) in lane.next.iter_mut().zip(&next) {
                *of_lane = next[k];
            }
        }
        true
    }

    /// Expands rows of mask bytes to all-ones or all-zeros lanes, transposed.
    ///
    /// # Safety
    ///
    /// As [`run`].
    #[inline(always)]
    unsafe fn transpose_masks(rows: [u64; SIDE]) -> [__m256; SIDE] {
        // SAFETY: the instructions need AVX2.
        unsafe {
            let mut masks = [_mm256_setzero_ps(); SIDE];
            for (mask, row) in masks.iter_mut().zip(rows) {
                let kept = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(row as i64));
                *mask = _mm256_castsi256_ps(_mm256_cmpgt_epi32(kept, _mm256_setzero_si256()));
            }
            transpose(masks)
        }
    }

    /// Transposes eight rows of eight; its own inverse.
    ///
    /// # Safety
    ///
    /// As [`run`].
    #[inline(always)]
    unsafe fn transpose(rows: [__m256; SIDE]) -> [__m256; SIDE] {
        // SAFETY: the instructions need AVX.
        unsafe {
            let [a, b, c, d, e, f, g, h] = rows;
            // interleave pairs of rows, then pairs of pairs, then exchange the 128-bit halves
            let (ab, ab_high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            let (cd, cd_high) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
            let (ef, ef_high) = (_mm256_unpacklo_ps(e, f), _mm256_unpackhi_ps(e, f));
            let (gh, gh_high) = (_mm256_unpacklo_ps(g, h), _mm256_unpackhi_ps(g, h));
            let first = [
                _mm256_shuffle_ps::<0x44>(ab, cd),
                _mm256_shuffle_ps::<0xee>(ab, cd),
                _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
                _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
            ];
            let second = [
                _mm256_shuffle_ps::<0x44>(ef, gh),
                _mm256_shuffle_ps::<0xee>(ef, gh),
                _mm256_shuffle_ps::<0x44>(ef_high, gh_high),
                _mm256_shuffle_ps::<0xee>(ef_high, gh_high),
            ];
            [
                _mm256_permute2f128_ps::<0x20>(first[0], second[0]),
                _mm256_permute2f128_ps::<0x20>(first[1], second[1]),
                _mm256_permute2f128_ps::<0x20>(first[2], second[2]),
                _mm256_permute2f128_ps::<0x20>(first[3], second[3]),
                _mm256_permute2f128_ps::<0x31>(first[0], second[0]),
                _mm256_permute2f128_ps::<0x31>(first[1], second[1]),
                _mm256_permute2f128_ps::<0x31>(first[2], second[2]),
                _mm256_permute2f128_ps::<0x31>(first[3], second[3]),
            ]
        }
    }
}
