//! Exponential function, with the same result bits on every target.
//!
//! Method: n = round(x·log2 e) and r = x − n·ln2, so that e^x = 2^n · e^r with |r| ≤ ln2/2. ln2 is
//! split so that head = x − n·LN2_HI is exact; r = head − n·LN2_LO serves only the polynomial, and
//! e^r = 1 + head + (r²·q(r) − n·LN2_LO) with q a minimax polynomial for (e^r − 1 − r) / r².
//! The rounding error of 1 + head is recovered and folded into the small correction, which leaves
//! one rounding of full size: the last addition. 2^n is applied as two factors, each a normal
//! number, so that only the last product can round (into a subnormal) or overflow.
//!
//! Only + − ×, comparisons, selects and integer operations on the bits are used, never a fused
//! multiply-add, and nothing branches, so a loop over an array vectorises with equal bits.
//!
//! Special cases: exp(NaN) = NaN, exp(+∞) = +∞, exp(−∞) = +0, exp(±0) = 1. Overflow gives +∞, underflow passes through
//! the subnormals to +0.
//!
//! Error, f32: at most 0.727 ulp, and 0.790 ulp of the subnormal spacing where the result is
//! subnormal (rounded twice there); all 2^32 inputs measured against f64; monotonic over all of
//! them. f64: 0.72 ulp, and 0.80 where the result is subnormal, are the largest of 4·10^8 random
//! inputs, a quarter of them near the borders |r| = ln2/2, measured against long double (64-bit
//! mantissa).
//!
//! Constants: minimax by Lawson iteration in 160-bit arithmetic, each coefficient rounded to the
//! type in turn and the rest fitted again; every literal reads back as the same bits.

use super::clamp;
use crate::simd::Pack;

/// e raised to the power `x`.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    // e^LOWEST rounds to zero and e^HIGHEST to infinity; n stays within [−150, 128].
    const LOWEST: f32 = -104.0;
    const HIGHEST: f32 = 89.0;
    // A NaN passes both comparisons and makes the mantissa NaN, whatever the integers are.
    let (mantissa, rounded) = reduced_f32(clamp(x, LOWEST, HIGHEST));
    // Wrapping, here and below, so that overflow checks put no branch into the loop. Twice the bias makes each half of
    // n a biased exponent.
    let n = rounded.to_bits().wrapping_sub(ROUNDER_BITS_F32 - 2 * EXPONENT_BIAS_F32);
    let first = n >> 1;
    let second = n.wrapping_sub(first);
    mantissa * f32::from_bits(first << 23) * f32::from_bits(second << 23)
}

/// Same bits as [`exp_f32`], for `x` from [`NEAR_F32`] to 0, or NaN: a single factor 2^n suffices.
#[inline(always)]
pub(crate) fn exp_near_f32(x: f32) -> f32 {
    let (mantissa, rounded) = reduced_f32(x);
    mantissa * f32::from_bits(rounded.to_bits().wrapping_sub(NEAR_ORIGIN_F32) << 23)
}

/// e^`NEAR` is still a normal number.
pub(crate) const NEAR_F32: f32 = -87.0;
const EXPONENT_BIAS_F32: u32 = 127;
/// 1.5·2^23: after adding it the unit of the last mantissa bit is 1.
pub(crate) const ROUNDER_F32: f32 = 12_582_912.0;
/// The bits of `rounded` minus the biased exponent of 2^n.
pub(crate) const NEAR_ORIGIN_F32: u32 = ROUNDER_BITS_F32 - EXPONENT_BIAS_F32;
const ROUNDER_BITS_F32: u32 = 0x4b40_0000;

/// e^r near 1, and n + [`ROUNDER_F32`]; for one number or for a vector of numbers, with the same bits.
#[inline(always)]
pub(crate) fn reduced_f32<V: Pack<f32>>(x: V) -> (V, V) {
    const LOG2_E: f32 = core::f32::consts::LOG2_E;
    // 15 leading bits of ln2: the product with any |n| < 2^9 is exact.
    const LN2_HI: f32 = 0.693_145_75;
    const LN2_LO: f32 = 1.428_606_8e-6;
    // minimax on [−ln2/2, ln2/2], error relative to e^r < 2^-28.2
    const Q0: f32 = 0.499_999_94;
    const Q1: f32 = 0.166_665_21;
    const Q2: f32 = 0.041_668_266;
    const Q3: f32 = 0.008_368_681;
    const Q4: f32 = 0.001_382_077_7;

    let rounded = x * x.splat(LOG2_E) + x.splat(ROUNDER_F32);
    let n = rounded - x.splat(ROUNDER_F32);
    let head = x - n * x.splat(LN2_HI);
    let n_ln2_lo = n * x.splat(LN2_LO);
    let r = head - n_ln2_lo;

    let r2 = r * r;
    let q = (x.splat(Q0) + x.splat(Q1) * r) + r2 * ((x.splat(Q2) + x.splat(Q3) * r) + r2 * x.splat(Q4));
    let sum = x.splat(1.0) + head;
    let sum_error = head - (sum - x.splat(1.0));
    let mantissa = sum + (sum_error + (r2 * q - n_ln2_lo));
    (mantissa, rounded)
}

/// e raised to the power `x`.
#[inline(always)]
pub(crate) fn exp_f64(x: f64) -> f64 {
    // e^LOWEST rounds to zero and e^HIGHEST to infinity; n stays within [−1076, 1024].
    const LOWEST: f64 = -746.0;
    const HIGHEST: f64 = 710.0;
    // A NaN passes both comparisons and makes the mantissa NaN, whatever the integers are.
    let (mantissa, n) = reduced_f64(clamp(x, LOWEST, HIGHEST));
    let first = n >> 1;
    let second = n.wrapping_sub(first);
    mantissa * f64::from_bits(first << 52) * f64::from_bits(second << 52)
}

/// Same bits as [`exp_f64`], for `x` from [`NEAR_F64`] to 0, or NaN: a single factor 2^n suffices.
#[inline(always)]
pub(crate) fn exp_near_f64(x: f64) -> f64 {
    let (mantissa, n) = reduced_f64(x);
    mantissa * f64::from_bits(n.wrapping_sub(EXPONENT_BIAS_F64) << 52)
}

/// e^`NEAR` is still a normal number.
pub(crate) const NEAR_F64: f64 = -708.0;
const EXPONENT_BIAS_F64: u64 = 1023;

/// e^r near 1, and n plus twice the exponent bias.
#[inline(always)]
fn reduced_f64(x: f64) -> (f64, u64) {
    // 1.5·2^52: after adding it the unit of the last mantissa bit is 1.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    const LOG2_E: f64 = core::f64::consts::LOG2_E;
    // 39 leading bits of ln2: the product with any |n| < 2^14 is exact.
    const LN2_HI: f64 = 0.693_147_180_560_117_7;
    const LN2_LO: f64 = -1.723_944_452_561_483_5e-13;
    // minimax on [−ln2/2, ln2/2], error relative to e^r < 2^-57.8
    const Q0: f64 = 0.500_000_000_000_001_1;
    const Q1: f64 = 0.166_666_666_666_664_4;
    const Q2: f64 = 0.041_666_666_666_526_94;
    const Q3: f64 = 0.008_333_333_333_477_565;
    const Q4: f64 = 0.001_388_888_894_435_960_2;
    const Q5: f64 = 0.000_198_412_695_413_984_56;
    const Q6: f64 = 2.480_149_242_065_639e-5;
    const Q7: f64 = 2.755_755_635_386_132_7e-6;
    const Q8: f64 = 2.763_047_080_427_384_6e-7;
    const Q9: f64 = 2.500_931_786_760_180_7e-8;
    // Keeps n unsigned, since AVX2 has no arithmetic right shift of 64-bit lanes, and makes each
    // half of it a biased exponent.
    const TWICE_EXPONENT_BIAS: u64 = 2 * EXPONENT_BIAS_F64;

    let rounded = x * LOG2_E + ROUNDER;
    let n = rounded - ROUNDER;
    // Wrapping, here and below, so that overflow checks put no branch into the loop.
    let n_biased = rounded.to_bits().wrapping_sub(ROUNDER.to_bits() - TWICE_EXPONENT_BIAS);
    let head = x - n * LN2_HI;
    let n_ln2_lo = n * LN2_LO;
    let r = head - n_ln2_lo;

    let r2 = r * r;
    let q_top = (Q6 + Q7 * r) + r2 * (Q8 + Q9 * r);
    let q = (Q0 + Q1 * r) + r2 * ((Q2 + Q3 * r) + r2 * ((Q4 + Q5 * r) + r2 * q_top));
    let sum = 1.0 + head;
    let sum_error = head - (sum - 1.0);
    let mantissa = sum + (sum_error + (r2 * q - n_ln2_lo));
    (mantissa, n_biased)
}
