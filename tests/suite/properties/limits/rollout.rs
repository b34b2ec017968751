use tokenwise::{
    control::*, divergence::*, metric::*, reward::*, rollout::*, Batch, Divisor, Layout, Mask, MeanConfig,
};
use tokenwise_tests::{
    generate::{Column, Number, Random, Spec, World},
    tolerance::{assert_bits, Basis},
};

use crate::{
    case::assert_close,
    properties::{check, skip, unless_too_small},
    rollout::input,
    rows::kl_weighted_config,
};

const FREE: RolloutConfig = RolloutConfig {
    level: RolloutLevel::Token,
    bound: WeightBound::Unbounded,
    log_bound: LogBound::Unbounded,
    normalize: BatchNormalize::Off,
    unscored: Unscored::Nan,
    divisor: Divisor::Count,
};

#[test]
fn weights_without_bounds_are_ratios_and_bounds_far_away_are_none() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let (batch, input) = (flat.batch(), input(&flat));
        let weights = |config: &RolloutConfig| {
            let mut out = vec![f64::NAN; flat.tokens()];
            rollout_weights(&batch, input, config, &mut out).unwrap();
            out
        };
        let free = weights(&FREE);
        for (slot, weight) in free.iter().enumerate().filter(|(slot, _)| flat.keep[*slot]) {
            let ratio = (input.old_log_probs[slot] - input.rollout_log_probs[slot]).exp();
            assert_close::<crate::rollout::RolloutWeights>(Basis::F64, &[*weight], &[ratio]);
        }
        for bound in [
            WeightBound::Truncate { upper: 1e300 },
            WeightBound::Zero { lower: 0.0, upper: f64::INFINITY },
            WeightBound::Clamp { lower: 0.0, upper: f64::INFINITY },
        ] {
            assert_bits("far away", &weights(&RolloutConfig { bound, ..FREE }), &free);
        }
        let far = RolloutConfig { log_bound: LogBound::At(1e3), ..FREE };
        assert_bits("log bound", &weights(&far), &free);
    });
}

#[test]
fn normalised_weights_have_mean_one() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let batch = flat.batch();
        let mut random = Random::new(spec.seed);
        let level = random.pick(&[RolloutLevel::Token, RolloutLevel::Sequence, RolloutLevel::Geometric]);
        let config = RolloutConfig { level, normalize: BatchNormalize::Tokens, ..FREE };
        let mut out = vec![f64::NAN; flat.tokens()];
        if unless_too_small(rollout_weights(&batch, input(&flat), &config, &mut out)).is_some() {
            let got = mean(&batch, &out, &MeanConfig::default()).unwrap();
            approx::assert_abs_diff_eq!(got, 1.0, epsilon = 1e-13);
        }
    });
}

#[test]
fn equal_policies_weigh_one_and_reject_nothing() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let old = flat.column(Column::OldLogProbs);
        let same = RolloutInput { old_log_probs: old, rollout_log_probs: old };
        let kept: Vec<f32> = flat.keep.iter().map(|&keep| f32::from(u8::from(keep))).collect();
        let mut out = vec![f32::NAN; flat.tokens()];
        rollout_weights(&flat.batch(), same, &RolloutConfig::default(), &mut out).unwrap();
        assert_bits("weights", &out, &kept);
        let criteria = RejectionOption::ALL.map(|option| Criterion { option, ..Default::default() });
        let mut keep = vec![false; flat.tokens()];
        let config = RejectionConfig { criteria: &criteria, ..Default::default() };
        rollout_rejection(&flat.batch(), same, &config, &mut keep).unwrap();
        assert_eq!(keep, flat.keep);
    });
}

#[test]
fn thresholds_far_away_keep_everything() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let criteria = RejectionOption::ALL.map(|option| Criterion { option, lower: 1e-30, upper: 1e30 });
        let mut keep = vec![false; flat.tokens()];
        for criteria in [&criteria[..], &[]] {
            let config = RejectionConfig { criteria, ..Default::default() };
            rollout_rejection(&flat.batch(), input(&flat), &config, &mut keep).unwrap();
            assert_eq!(keep, flat.keep);
        }
        high_entropy_mask(&flat.batch(), flat.column(Column::Weights), &HighEntropyConfig { share: 1.0 }, &mut keep)
            .unwrap();
        assert_eq!(keep, flat.keep);
        let mut scratch = vec![0.0; flat.batch().kept()];
        m2po_mask(&flat.batch(), input(&flat), &M2poConfig { tau: 1e30 }, &mut scratch, &mut keep).unwrap();
        assert_eq!(keep, flat.keep);
    });
}

#[test]
fn an_unscored_token_is_nan_or_ignored() {
    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, true])).unwrap();
    let input = RolloutInput { old_log_probs: &[-1.0, -1.0], rollout_log_probs: &[f64::NAN, -1.0] };
    let mut out = [9.0; 2];
    rollout_weights(&batch, input, &RolloutConfig::default(), &mut out).unwrap();
    assert!(out[0].is_nan() && out[1] == 1.0);
    rollout_weights(&batch, input, &RolloutConfig { unscored: Unscored::Ignore, ..FREE }, &mut out).unwrap();
    assert_eq!(out, [1.0, 1.0]);
    assert!(rollout_mismatch(&batch, input, &MeanConfig::default()).unwrap().kl.is_nan());
    let mut keep = [true; 2];
    let criteria = [Criterion::default()];
    rollout_rejection(&batch, input, &RejectionConfig { criteria: &criteria, ..Default::default() }, &mut keep)
        .unwrap();
    assert_eq!(keep, [false, true]);
}

fn quantiles_are_order_statistics<R: Number>(spec: Spec) {
    let flat = World::<R>::new(spec).packed();
    let values = flat.column(Column::Values);
    let mut sorted: Vec<f64> = (0..flat.tokens()).filter(|&i| flat.keep[i]).map(|i| values[i].widen()).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return skip() };
    let at = |level| quantile(&flat.batch(), values, &QuantileConfig { level }).unwrap();
    assert_bits("ends", &[at(0.0), at(1.0)], &[sorted[0], sorted[last]]);
    let median = (sorted[last / 2] + sorted[last - last / 2]) / 2.0;
    assert_close::<crate::rows::Quantile>(Basis::F64, &[at(0.5)], &[median]);

    // the histogram is accurate to the width of its bins, however its parts are merged
    let mut whole = Histogram::default();
    whole.add(&flat.batch(), values).unwrap();
    let world = World::<R>::new(spec);
    let (mut forwards, mut backwards) = (Histogram::default(), Histogram::default());
    for i in 0..world.len() {
        for (joined, i) in [(&mut forwards, i), (&mut backwards, world.len() - 1 - i)] {
            let part = world.part(i..i + 1).packed();
            let mut own = Histogram::default();
            own.add(&part.batch(), part.column(Column::Values)).unwrap();
            joined.merge(&own);
        }
    }
    assert!(whole == forwards && whole == backwards);
    for (rank, exact) in sorted.iter().enumerate() {
        let got = whole.quantile(if last == 0 { 0.0 } else { rank as f64 / last as f64 }).unwrap();
        assert!((got - exact).abs() <= exact.abs() / 31.0 + 2_f64.powi(-24), "{got}, exact {exact}");
    }
}

#[test]
fn quantiles_and_histograms_are_order_statistics() {
    check(quantiles_are_order_statistics::<f32>);
    check(quantiles_are_order_statistics::<f64>);
}

#[test]
fn rows_of_constants() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let (batch, constant) = (flat.batch(), vec![0.1; flat.tokens()]);
        let mut means = vec![f64::NAN; flat.rows.len()];
        row_means(&batch, &constant, &MeanConfig::default(), &mut means).unwrap();
        for (row, mean) in flat.rows.iter().zip(means) {
            let kept = flat.keep[row.clone()].contains(&true);
            approx::assert_abs_diff_eq!(mean, if kept { 0.1 } else { 0.0 }, epsilon = 1e-16);
        }
        let mut out = vec![f64::NAN; flat.tokens()];
        row_normalize(&batch, &constant, &RowNormalizeConfig { floor: 1e-8 }, &mut out).unwrap();
        assert!(out.iter().all(|x| x.abs() < 1e-11));
        if let Ok(size) = effective_sample_size(&batch, &constant) {
            assert_close::<crate::rows::EffectiveSampleSize>(Basis::F64, &[size], &[batch.kept() as f64]);
        }
    });
}

#[test]
fn the_weighted_kl_of_a_policy_that_did_not_move_is_the_estimate() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let config = kl_weighted_config(&mut Random::new(spec.seed));
        if config.weight == KlWeight::TokenBounded {
            return skip();
        }
        let (log_probs, ref_log_probs) = (flat.column(Column::LogProbs), flat.column(Column::RefLogProbs));
        let [mut got, mut want] = [vec![f32::NAN; flat.tokens()], vec![f32::NAN; flat.tokens()]];
        let input = KlWeightedInput { log_probs, ref_log_probs, old_log_probs: log_probs };
        kl_importance_weighted(&flat.batch(), input, &config, &mut got).unwrap();
        kl_estimate(&flat.batch(), KlInput { log_probs, ref_log_probs }, &config.kl, &mut want).unwrap();
        assert_bits("weight 1", &got, &want);
    });
}

#[test]
fn the_price_of_kl_moves_by_exact_steps() {
    let mut price = AdaptiveKl::new(&AdaptiveKlConfig { beta: 0.5, target: 0.25, horizon: 128.0 }).unwrap();
    // on target, a half above (clipped to a fifth), an eighth below
    assert_eq!(price.update(0.25, 64), Ok(0.5));
    assert_eq!(price.update(0.375, 64), Ok(0.5 * (1.0 + 0.2 * 64.0 / 128.0)));
    let before = price.beta();
    assert_eq!(price.update(0.21875, 64), Ok(before * (1.0 - 0.125 * 64.0 / 128.0)));
    assert_eq!(price.update(0.0, 0), Ok(price.beta()));
    let mut fixed = FixedKl::new(0.125).unwrap();
    assert_eq!((fixed.update(1e9, 7), fixed.beta()), (Ok(0.125), 0.125));
}

#[test]
fn running_moments_are_those_of_everything_so_far() {
    let mut running = RunningMoments::default();
    let mut random = Random::new(11);
    let mut all: Vec<f64> = Vec::new();
    for size in [3, 1, 17, 2] {
        let batch: Vec<f64> = (0..size).map(|_| random.between(-2.0, 3.0)).collect();
        running.update(&batch).unwrap();
        all.extend(batch);
    }
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let squares = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    let want = [n, mean, squares / n, (squares / (n - 1.0)).sqrt()];
    for (got, want) in [running.count(), running.mean(), running.variance(), running.std()].into_iter().zip(want) {
        approx::assert_abs_diff_eq!(got, want, epsilon = 1e-13);
    }
}

#[test]
fn scores_at_the_ends_of_their_penalties() {
    let scores = [0.5, -1.5];
    let mut out = [9.0; 2];
    stop_properly_penalty(
        TruncatedInput { scores: &scores, truncated: &[true; 2] },
        &StopProperlyConfig { coefficient: 1.0 },
        &mut out,
    )
    .unwrap();
    assert_eq!(out, scores);
    missing_eos_penalty(
        MissingEosInput { scores: &scores, ended: &[true; 2] },
        &MissingEosConfig { penalty: 3.0 },
        &mut out,
    )
    .unwrap();
    assert_eq!(out, scores);
    let wide = RewardScaleConfig::Clip { low: f64::NEG_INFINITY, high: f64::INFINITY };
    assert_eq!((reward_scale_clip(&scores, &wide, &mut out), out), (Ok(0.0), scores));
    let same = RewardScaleConfig::Map { from: (-2.0, 2.0), to: (-2.0, 2.0) };
    assert_eq!((reward_scale_clip(&scores, &same, &mut out), out), (Ok(0.0), scores));
}
