//! The results against exact arithmetic.

use super::*;

/// A fraction of whole numbers, small enough to check by hand with `i128`.
#[test]
fn means_and_deviations_are_correctly_rounded() {
    let mut random = Random(3);
    for round in 0..if cfg!(miri) { 4 } else { 300 } {
        // multiples of 2⁻²⁰ below 2¹¹: sums of squares fit into 128 bits
        let len = 1 + random.below(40);
        let whole: Vec<i128> = (0..len).map(|_| random.next() as i32 as i128).collect();
        let unit = 1.0 / f64::from(1 << 20);
        let values: Vec<f64> = whole.iter().map(|&x| x as f64 * unit).collect();
        let keep = vec![true; len];
        let (mut state, mut by_sequence) = (ExactMoments::default(), ExactMoments::default());
        state.update_by_number(&batch_of(&keep), &values).unwrap();
        by_sequence.update(&batch_of(&keep), &values).unwrap();
        let n = len as i128;
        let (sum, squares) = whole.iter().fold((0, 0), |(sum, squares), x| (sum + x, squares + x * x));
        let found = state.moments();
        assert_eq!(found.mean, divided(sum, n) * unit, "{round}");
        assert_eq!(found.m2, divided(n * squares - sum * sum, n) * unit * unit, "{round}");
        // numbers on a grid: their sum is exact, their squares are rounded
        assert_eq!(by_sequence.moments().mean, found.mean, "{round}");
        assert!(ulps(by_sequence.moments().m2, found.m2) <= 4, "{round}: {:?} {found:?}", by_sequence.moments());
    }
}

/// The nearest `f64` to a fraction.
fn divided(numerator: i128, denominator: i128) -> f64 {
    let negative = numerator < 0;
    let numerator = numerator.unsigned_abs();
    if numerator == 0 {
        return 0.0;
    }
    // as many bits as there is room for, and the rest as one sticky bit
    let shift = numerator.leading_zeros();
    let (shifted, by) = (numerator << shift, denominator.unsigned_abs());
    let quotient = shifted / by;
    let quotient = quotient | u128::from(shifted % by != 0);
    assert!(quotient >> 60 > 0, "the quotient has enough bits");
    let mut rounded = quotient as f64;
    (0..shift).for_each(|_| rounded /= 2.0);
    if negative {
        -rounded
    } else {
        rounded
    }
}

/// How many numbers of `f64` two numbers of the same sign are apart.
fn ulps(a: f64, b: f64) -> u64 {
    a.to_bits().abs_diff(b.to_bits())
}

#[test]
fn one_by_one_both_types_have_the_same_limbs() {
    let mut random = Random(11);
    // each of the six spreads at least once
    let (rounds, longest) = if cfg!(miri) { (6, 30) } else { (60, 1500) };
    for round in 0..rounds {
        let len = 1 + random.below(longest);
        let spread = [0, 18, 30, 45, 80, 140][round % 6];
        let scaled = |random: &mut Random| {
            let x = random.number() as f32;
            let exponent = random.below(spread + 1) as i32 - (spread / 2) as i32;
            (0..exponent.abs()).fold(x, |x, _| if exponent < 0 { x / 2.0 } else { x * 2.0 })
        };
        let x: Vec<f32> = (0..len).map(|_| scaled(&mut random)).collect();
        let y: Vec<f32> = (0..len).map(|_| scaled(&mut random)).collect();
        let keep: Vec<bool> = (0..len).map(|_| random.below(5) > 0).collect();
        let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let (wide_x, wide_y) = (wide(&x), wide(&y));
        let (mut single, mut double) = (ExactCoMoments::default(), ExactCoMoments::default());
        single.update_by_number(&batch_of(&keep), PairInput { x: &x, y: &y }).unwrap();
        double.update_by_number(&batch_of(&keep), PairInput { x: &wide_x, y: &wide_y }).unwrap();
        assert!(single == double, "{round}");
        let mut one_by_one = ExactSum::default();
        wide_x.iter().zip(&keep).filter(|(_, &keep)| keep).for_each(|(&x, _)| one_by_one.add(x));
        let mut at_once = ExactSum::default();
        at_once.update_by_number(&batch_of(&keep), &x).unwrap();
        assert!(one_by_one == at_once, "{round}");
    }
}

/// Sequences of numbers around `mean`, some of them far out.
fn around(mean: f64, random: &mut Random) -> (Vec<u32>, Vec<f64>) {
    let offsets = if cfg!(miri) { vec![0, 1, 1, 8, 40, 90, 100] } else { vec![0, 1, 1, 8, 400, 3000, 4100] };
    let values =
        (0..offsets[6]).map(|_| mean + (0..4).fold(0.0, |sum, _| sum + random.number().clamp(-9.0, 9.0))).collect();
    (offsets, values)
}

#[test]
fn a_mean_far_above_the_spread_costs_no_digits() {
    let mut random = Random(17);
    let (tokens, every) = if cfg!(miri) { (100, 24) } else { (4100, 1) };
    let keep: Vec<bool> = (0..tokens).map(|_| random.below(7) > 0).collect();
    for exponent in (0..48).step_by(every) {
        let mean = -1.37 * (1_u64 << exponent) as f64;
        let (offsets, values) = around(mean, &mut random);
        let single: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let batch = Batch::new(Layout::packed(&offsets).unwrap(), Mask::new(&keep)).unwrap();
        let other: Vec<f64> = values.iter().map(|x| -3.0 * x + random.number().clamp(-9.0, 9.0)).collect();
        let other_single: Vec<f32> = other.iter().map(|&x| x as f32).collect();
        near_exact(&batch, &values, &other, exponent);
        // beyond that all numbers of f32 are the same
        if exponent < 20 {
            near_exact(&batch, &single, &other_single, exponent);
        }
    }
}

/// The states by sequences against those by numbers, which are exact. Squares of 27 bits are all ties when they are
/// rounded, which is the worst case.
fn near_exact<R: crate::Real>(batch: &Batch<'_>, x: &[R], y: &[R], exponent: usize) {
    let (mut moments, mut exact) = (ExactMoments::default(), ExactMoments::default());
    moments.update(batch, x).unwrap();
    exact.update_by_number(batch, x).unwrap();
    let (got, expected) = (moments.moments(), exact.moments());
    assert!(ulps(got.mean, expected.mean) <= 4, "2^{exponent}: {got:?} {expected:?}");
    assert!(ulps(got.m2, expected.m2) <= 8, "2^{exponent}: {got:?} {expected:?}");
    let (mut joint, mut exact) = (ExactCoMoments::default(), ExactCoMoments::default());
    joint.update(batch, PairInput { x, y }).unwrap();
    exact.update_by_number(batch, PairInput { x, y }).unwrap();
    let mut analysed = ExactAnalysis::default();
    analysed.update(batch, AnalysisInput { advantages: x, old_log_probs: y, rewards: x }).unwrap();
    let expected = exact.co_moments();
    for got in [joint.co_moments(), analysed.analysis().unwrap().moments] {
        let apart = [
            ulps(got.mean_x, expected.mean_x),
            ulps(got.mean_y, expected.mean_y),
            ulps(got.m2_x, expected.m2_x),
            ulps(got.m2_y, expected.m2_y),
            ulps(got.co_moment, expected.co_moment),
        ];
        assert!(apart.iter().all(|&ulps| ulps <= 8), "2^{exponent}: {apart:?} {got:?} {expected:?}");
    }
}

#[test]
fn numbers_far_out_cost_a_few_digits_at_most() {
    // the pivot is the middle one of the first three: as far out as can be
    let mut values = vec![0.0; 1024];
    let mut random = Random(23);
    values.iter_mut().for_each(|x| *x = random.number().clamp(-1.0, 1.0));
    (values[0], values[1]) = (3e7, 3e7 + 1.0);
    let keep = [true; 1024];
    let (mut moments, mut exact) = (ExactMoments::default(), ExactMoments::default());
    moments.update(&batch_of(&keep), &values).unwrap();
    exact.update_by_number(&batch_of(&keep), &values).unwrap();
    approx::assert_relative_eq!(moments.moments().m2, exact.moments().m2, max_relative = 1024.0 * f64::EPSILON);
    approx::assert_relative_eq!(moments.moments().mean, exact.moments().mean, max_relative = 1024.0 * f64::EPSILON);
}

#[test]
fn infinities_of_a_sequence_are_counted_as_by_number() {
    let keep = [true, true, true, false, true];
    let batch = batch_of(&keep);
    for special in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        for at in [0, 2, 4] {
            let (mut x, mut y) = ([1.0, 2.0, 3.0, f64::NAN, 5.0], [0.5, -1.0, 2.0, f64::NAN, 4.0]);
            x[at] = special;
            let (mut got, mut expected) = (ExactMoments::default(), ExactMoments::default());
            got.update(&batch, &x).unwrap();
            expected.update_by_number(&batch, &x).unwrap();
            assert!(got == expected, "{special} at {at}");
            y[4 - at] = -special;
            let (mut got, mut expected) = (ExactCoMoments::default(), ExactCoMoments::default());
            got.update(&batch, PairInput { x: &x, y: &y }).unwrap();
            expected.update_by_number(&batch, PairInput { x: &x, y: &y }).unwrap();
            assert!(got == expected, "{special} at {at}");
        }
    }
}
