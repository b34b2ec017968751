//! Statistics of shards merged in any order, and sums that are as accurate as `f64` allows.

use tokenwise::{metric::*, Batch, CoMoments, Layout, Mask, MeanConfig, Moments, PairInput};
use tokenwise_tests::generate::{Column, Flat, Number, Random, Spec, World};

use super::{check, unless_too_small};
use crate::metric::analysis_input;

/// The kept sequences one by one, in a random order.
fn shards<R: Number>(world: &World<R>, random: &mut Random) -> Vec<Flat<R>> {
    let mut order: Vec<usize> = (0..world.len()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i + 1));
    }
    order.into_iter().map(|i| world.part(i..i + 1).packed()).collect()
}

fn largest<R: Number>(flat: &Flat<R>, column: Column) -> f64 {
    let kept = flat.column(column).iter().zip(&flat.keep).filter(|(_, &keep)| keep);
    kept.fold(0.0, |max, (x, _)| max.max(x.widen().abs()))
}

/// Rounding error of `merges` merges: a few ε of each mean, and its effect on the squares.
fn assert_merged(what: &str, merges: usize, got: &CoMoments, want: &CoMoments, (x, y): (f64, f64)) {
    assert_eq!(got.count, want.count, "{what}: count");
    let (n, step) = (want.count as f64, 4.0 * (merges + 2) as f64 * f64::EPSILON);
    let near = |part: &str, got: f64, want: f64, bound: f64| {
        assert!((got - want).abs() <= bound, "{what}: {part} {got:e}, whole {want:e}, {bound:e} apart allowed");
    };
    near("mean_x", got.mean_x, want.mean_x, step * x);
    near("mean_y", got.mean_y, want.mean_y, step * y);
    near("m2_x", got.m2_x, want.m2_x, step * (want.m2_x + x * (n * want.m2_x).sqrt()) + n * (step * x) * (step * x));
    near("m2_y", got.m2_y, want.m2_y, step * (want.m2_y + y * (n * want.m2_y).sqrt()) + n * (step * y) * (step * y));
    let size = (want.m2_x * want.m2_y).sqrt();
    let moved = x * (n * want.m2_y).sqrt() + y * (n * want.m2_x).sqrt() + step * n * x * y;
    near("co_moment", got.co_moment, want.co_moment, step * (size + moved));
}

fn in_any_order<R: Number>(spec: Spec) {
    let world = World::<R>::new(spec);
    let whole = world.packed();
    let parts = shards(&world, &mut Random::new(spec.seed ^ 0x0bde));
    let (x, y) = (Column::Advantages, Column::OldLogProbs);
    let sizes = (largest(&whole, x), largest(&whole, y));

    let want = CoMoments::of(&whole.batch(), PairInput { x: whole.column(x), y: whole.column(y) }).unwrap();
    let mut pairs = CoMoments::default();
    let mut numbers = Moments::default();
    for part in &parts {
        let input = PairInput { x: part.column(x), y: part.column(y) };
        pairs.merge(&CoMoments::of(&part.batch(), input).unwrap());
        numbers.merge(&Moments::of(&part.batch(), part.column(x)).unwrap());
    }
    assert_merged("co-moments", parts.len(), &pairs, &want, sizes);
    let Moments { count, mean, m2 } = numbers;
    let numbers = CoMoments { count, mean_x: mean, m2_x: m2, ..want };
    assert_merged("moments", parts.len(), &numbers, &want, sizes);

    let Some(want) = unless_too_small(analysis(&whole.batch(), analysis_input(&whole))) else { return };
    let mut merged = Analysis::default();
    for part in &parts {
        // a shard without kept tokens only counts rows
        let mut empty = Analysis::default();
        empty.sequences = 1;
        merged.merge(&analysis(&part.batch(), analysis_input(part)).unwrap_or(empty));
    }
    assert_merged("analysis", parts.len(), &merged.moments, &want.moments, sizes);
    assert_eq!(merged.sequences, want.sequences);
    let bound = parts.len() as f64 * f64::EPSILON * want.moments.count as f64;
    for (got, want) in
        [(merged.entropy_sum, want.entropy_sum), (merged.wh_sum, want.wh_sum), (merged.reward_sum, want.reward_sum)]
    {
        // no term is above 1, or 1.3 for w H
        assert!((got - want).abs() <= 2.0 * bound, "{got:e}, whole {want:e}");
    }
}

#[test]
fn shards_join_in_any_order() {
    check(in_any_order::<f32>);
    check(in_any_order::<f64>);
}

#[test]
fn an_empty_shard_changes_no_bit() {
    let moments = Moments { count: 3, mean: 0.1, m2: 0.7 };
    let (mut left, mut right) = (moments, Moments::default());
    left.merge(&Moments::default());
    right.merge(&moments);
    assert_eq!((left, right), (moments, moments));
}

#[test]
fn the_f32_mean_of_a_million_is_within_one_ulp() {
    let n = 1_000_003;
    let mut random = Random::new(7);
    let values: Vec<f32> =
        (0..n).map(|_| (random.between(-1.0, 3.0) * random.pick(&[1.0, 1e3, 1e-3])) as f32).collect();
    let keep: Vec<bool> = (0..n).map(|_| random.below(9) != 0).collect();
    // exact: every value is a multiple of 2^-70 or so below 2^12; i128 in units of 2^-90 holds the sum
    let mut total = 0_i128;
    for (&value, &keep) in values.iter().zip(&keep) {
        if keep {
            total += (f64::from(value) * 2_f64.powi(90)) as i128;
        }
    }
    for layout in [Layout::padded(1, n).unwrap(), Layout::padded(n, 1).unwrap()] {
        let batch = Batch::new(layout, Mask::new(&keep)).unwrap();
        let exact = total as f64 / 2_f64.powi(90) / batch.kept() as f64;
        let got = mean(&batch, &values, &MeanConfig::default()).unwrap() as f32;
        let ulps = (i64::from(got.to_bits()) - i64::from((exact as f32).to_bits())).abs();
        assert!(ulps <= 1, "{got:e}, exact {exact:e}: {ulps} ulps");
    }
}
