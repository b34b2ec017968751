//! Accuracy, special cases and bits of `exp` and `ln`.
//!
//! f32 is measured against the f64 functions of libm, whose own error (below 2^-28 ulp of f32) does
//! not show. f64 is compared with libm itself: both err by less than 1 ulp, so results may be
//! neighbours but never further apart. The bounds are the figures of the exhaustive f32 sweep, that
//! is `sweep_exp_f32(0..=u32::MAX, 1)` and `sweep_ln_f32(0..=u32::MAX, 1)`.

use super::exp::{exp_f32, exp_f64, exp_near_f32, exp_near_f64, NEAR_F32, NEAR_F64};
use super::ln::{ln_f32, ln_f64};
use core::hint::black_box;
use core::ops::RangeInclusive;

const EXP_F32_ULP: f64 = 0.79;
const LN_F32_ULP: f64 = 0.65;
const F64_STEPS_FROM_LIBM: u64 = 1;
/// Prime, so that every exponent meets every low bit. Miri needs a millisecond for each number.
const STRIDE: usize = if cfg!(miri) { 10_000_019 } else { 257 };
const AROUND_EDGE: u32 = if cfg!(miri) { 0 } else { 64 };
const ROUNDS: usize = if cfg!(miri) { 100 } else { 1_000_000 };

/// Largest error of `exp_f32` over every `stride`-th bit pattern, in ulp of the exact result.
pub(crate) fn sweep_exp_f32(bits: RangeInclusive<u32>, stride: usize) -> f64 {
    largest_error_f32(exp_f32, libm::exp, bits, stride)
}

/// Largest error of `ln_f32` over every `stride`-th bit pattern, in ulp of the exact result.
pub(crate) fn sweep_ln_f32(bits: RangeInclusive<u32>, stride: usize) -> f64 {
    largest_error_f32(ln_f32, libm::log, bits, stride)
}

fn largest_error_f32(
    function: impl Fn(f32) -> f32,
    reference: impl Fn(f64) -> f64,
    bits: RangeInclusive<u32>,
    stride: usize,
) -> f64 {
    bits.step_by(stride).fold(0.0, |largest, pattern| {
        let x = f32::from_bits(pattern);
        largest.max(error_f32(function(x), reference(f64::from(x))))
    })
}

fn error_f32(result: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if nearest.is_finite() && result.is_finite() {
        return (f64::from(result) - exact).abs() / spacing_f32(exact);
    }
    if result.to_bits() == nearest.to_bits() || (result.is_nan() && exact.is_nan()) {
        0.0
    } else {
        f64::INFINITY
    }
}

fn spacing_f32(exact: f64) -> f64 {
    let smallest_normal = f64::from(f32::MIN_POSITIVE);
    let magnitude = exact.abs().clamp(smallest_normal, f64::from(f32::MAX));
    let power_of_two = f64::from_bits(magnitude.to_bits() & f64::INFINITY.to_bits());
    power_of_two * f64::from(f32::EPSILON)
}

/// How many representable numbers lie between two results of the same function.
fn steps_f64(result: f64, expected: f64) -> u64 {
    if expected.is_nan() {
        return if result.is_nan() { 0 } else { u64::MAX };
    }
    let ordered = |value: f64| {
        let bits = value.to_bits() as i64;
        bits ^ (((bits >> 63) as u64) >> 1) as i64
    };
    ordered(result).abs_diff(ordered(expected))
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Limits of the formats, the arguments where exp reaches them, the clamps of exp, and the borders
/// between two values of n in exp and of k in ln.
fn edges() -> Vec<f64> {
    use core::f64::consts::{LN_2, SQRT_2};
    let smallest = [f32::from_bits(1).into(), f64::from_bits(1)];
    let normal32: [f64; 2] = [f32::MIN_POSITIVE.into(), f32::MAX.into()];
    let normal64 = [f64::MIN_POSITIVE, f64::MAX];
    let limits = [smallest, normal32, normal64].concat();
    let borders = (0..1080).step_by(if cfg!(miri) { 40 } else { 1 }).map(|n| (f64::from(n) + 0.5) * LN_2);

    let mut edges = vec![0.0, 1.0, f64::INFINITY, SQRT_2, 0.5 * SQRT_2];
    edges.extend([89.0, 104.0, 710.0, 746.0]);
    edges.extend(limits.iter().map(|&limit| libm::log(limit)));
    edges.extend(limits.iter().map(|&limit| libm::log(limit) - LN_2));
    edges.extend(limits);
    edges.extend(borders);
    edges.into_iter().flat_map(|edge| [edge, -edge]).collect()
}

#[test]
fn f32_error_stays_below_the_exhaustive_figure() {
    let everywhere = (0..=u32::MAX, STRIDE);
    let around_edges = edges().into_iter().map(|edge| {
        let bits = (edge as f32).to_bits();
        let around = bits.saturating_sub(AROUND_EDGE)..=bits.saturating_add(AROUND_EDGE);
        (around, 1)
    });
    for (bits, stride) in around_edges.chain([everywhere]) {
        let exp_error = sweep_exp_f32(bits.clone(), stride);
        let ln_error = sweep_ln_f32(bits.clone(), stride);
        assert!(exp_error < EXP_F32_ULP, "exp {bits:x?}: {exp_error}");
        assert!(ln_error < LN_F32_ULP, "ln {bits:x?}: {ln_error}");
    }
}

fn assert_f64_near_libm(x: f64) {
    let exp_steps = steps_f64(exp_f64(x), libm::exp(x));
    assert!(exp_steps <= F64_STEPS_FROM_LIBM, "exp({x:e}): {exp_steps}");
    let ln_steps = steps_f64(ln_f64(x), libm::log(x));
    assert!(ln_steps <= F64_STEPS_FROM_LIBM, "ln({x:e}): {ln_steps}");
}

#[test]
fn f64_is_libm_or_its_neighbour() {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..ROUNDS {
        let bits = xorshift(&mut state);
        let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
        assert_f64_near_libm(f64::from_bits(bits));
        assert_f64_near_libm(-750.0 + 1465.0 * unit);
        assert_f64_near_libm(0.5 + 1.5 * unit);
    }
    for edge in edges() {
        let bits = edge.to_bits();
        let distance = u64::from(AROUND_EDGE);
        let around = bits.saturating_sub(distance)..=bits.saturating_add(distance);
        around.for_each(|pattern| assert_f64_near_libm(f64::from_bits(pattern)));
    }
}

#[test]
fn exp_special_cases_are_exact() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let case = |x: f32, expected: f32| {
        assert_eq!(error_f32(exp_f32(x), expected.into()), 0.0, "exp({x:e})");
        assert_eq!(steps_f64(exp_f64(x.into()), expected.into()), 0, "exp({x:e})");
    };
    case(nan, nan);
    case(-nan, nan);
    case(infinity, infinity);
    case(-infinity, 0.0);
    case(0.0, 1.0);
    case(-0.0, 1.0);
    case(1e-40, 1.0);
    case(-1e-40, 1.0);
    case(1e30, infinity);
    case(-1e30, 0.0);
}

#[test]
fn the_short_form_of_exp_has_the_same_bits() {
    for i in (0..=1_000_000).step_by(1_000_000 / ROUNDS) {
        let (x, y) = (NEAR_F32 * (i as f32 / 1e6), NEAR_F64 * (f64::from(i) / 1e6));
        assert_eq!(exp_near_f32(x).to_bits(), exp_f32(x).to_bits(), "exp({x:e})");
        assert_eq!(exp_near_f64(y).to_bits(), exp_f64(y).to_bits(), "exp({y:e})");
    }
    assert!(exp_near_f32(f32::NAN).is_nan() && exp_near_f64(f64::NAN).is_nan());
}

#[test]
fn ln_special_cases_are_exact() {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let case = |x: f32, expected: f32| {
        assert_eq!(error_f32(ln_f32(x), expected.into()), 0.0, "ln({x:e})");
        assert_eq!(steps_f64(ln_f64(x.into()), expected.into()), 0, "ln({x:e})");
    };
    case(nan, nan);
    case(-nan, nan);
    case(infinity, infinity);
    case(-infinity, nan);
    case(0.0, -infinity);
    case(-0.0, -infinity);
    case(1.0, 0.0);
    case(-1.0, nan);
    case(-1e-40, nan);
    case(-1e30, nan);
}

#[test]
fn lanes_have_the_bits_of_the_scalar() {
    let mut state = 0x2545_f491_4f6c_dd1d;
    for _ in 0..ROUNDS / 10 {
        let x32: [f32; 8] = core::array::from_fn(|_| f32::from_bits(xorshift(&mut state) as u32));
        let x64: [f64; 8] = core::array::from_fn(|_| f64::from_bits(xorshift(&mut state)));
        let (exp32, ln32) = black_box((x32.map(exp_f32), x32.map(ln_f32)));
        let (exp64, ln64) = black_box((x64.map(exp_f64), x64.map(ln_f64)));
        for lane in 0..8 {
            let (one32, one64) = (black_box(x32[lane]), black_box(x64[lane]));
            assert_eq!(exp32[lane].to_bits(), exp_f32(one32).to_bits(), "{one32:e}");
            assert_eq!(ln32[lane].to_bits(), ln_f32(one32).to_bits(), "{one32:e}");
            assert_eq!(exp64[lane].to_bits(), exp_f64(one64).to_bits(), "{one64:e}");
            assert_eq!(ln64[lane].to_bits(), ln_f64(one64).to_bits(), "{one64:e}");
        }
    }
}
