//! NaN in rewards, rollout corrections and statistics: two sequences of two tokens, with a NaN in the first.

use tokenwise::{
    advantage::sequence_sums, metric::*, reward::*, rollout::*, Batch, Divisor, Groups, Layout, Mask, MeanConfig,
    Moments,
};

const NAN: f64 = f64::NAN;
const CLEAN: [f64; 4] = [-1.0, -2.0, -0.5, -1.5];
const SPOILT: [f64; 4] = [NAN, -2.0, -0.5, -1.5];

fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[true; 4])).unwrap()
}

fn spoilt() -> RolloutInput<'static, f64> {
    RolloutInput { old_log_probs: &SPOILT, rollout_log_probs: &CLEAN }
}

/// Which entries are NaN.
fn none(values: &[f64]) -> Vec<bool> {
    values.iter().map(|x| x.is_nan()).collect()
}

#[test]
fn scores_keep_what_is_none() {
    let mut out = [0.0; 2];
    let input = KlInScoresInput { scores: &[1.0, 1.0], old_log_probs: &SPOILT, ref_log_probs: &CLEAN };
    kl_in_scores(&batch(), input, &KlInScoresConfig { beta: 0.5 }, &mut out).unwrap();
    assert_eq!(none(&out), [true, false]);
    let input = TruncatedInput { scores: &[NAN, 1.0], truncated: &[true, true] };
    stop_properly_penalty(input, &StopProperlyConfig { coefficient: 0.5 }, &mut out).unwrap();
    assert_eq!(none(&out), [true, false]);
    // a fixed penalty does not depend on the score
    stop_properly_penalty(input, &StopProperlyConfig { coefficient: -1.0 }, &mut out).unwrap();
    assert_eq!(out, [-1.0, -1.0]);
    missing_eos_penalty(
        MissingEosInput { scores: &[NAN, 1.0], ended: &[false, false] },
        &MissingEosConfig { penalty: 0.5 },
        &mut out,
    )
    .unwrap();
    assert_eq!(none(&out), [true, false]);
    let overlong = OverlongConfig { max_len: 8, buffer: 4, factor: 1.0, floor: OverlongFloor::Factor };
    overlong_penalty(OverlongInput { scores: &[NAN, 1.0], lengths: &[6, 6] }, &overlong, &mut out).unwrap();
    assert_eq!(none(&out), [true, false]);
    for scale in [
        RewardScaleConfig::Clip { low: 0.0, high: 0.5 },
        RewardScaleConfig::ShiftScaleClip { bias: 1.0, scale: 2.0, bound: 1.0 },
        RewardScaleConfig::Map { from: (0.0, 0.5), to: (0.0, 1.0) },
    ] {
        // the bound takes effect on the 1, not on the NaN
        assert_eq!(reward_scale_clip(&[NAN, 1.0], &scale, &mut out), Ok(0.5), "{scale:?}");
        assert_eq!(none(&out), [true, false], "{scale:?}");
    }
    let input = GroupLengthInput { scores: &[NAN, 1.0], outputs: &[1, 2], inputs: &[1, 1], turns: &[1, 1] };
    let config = GroupLengthConfig { output_weight: 0.5, ..Default::default() };
    length_penalty_group(&Groups::contiguous(&[1, 1]).unwrap(), input, &config, &mut out).unwrap();
    assert_eq!(none(&out), [true, false]);
    length_penalty_group(&Groups::contiguous(&[2]).unwrap(), input, &config, &mut out).unwrap();
    assert_eq!(none(&out), [true, true]);
}

#[test]
fn rewards_keep_it_in_their_token() {
    let mut out = [0.0; 4];
    let input = ClippedRewardsInput { scores: &[1.0, 1.0], kl: &SPOILT };
    clipped_rewards(&batch(), input, &ClippedRewardsConfig::default(), &mut out).unwrap();
    assert_eq!(none(&out), [true, false, false, false]);
    let input = ClippedRewardsInput { scores: &[NAN, f64::INFINITY], kl: &CLEAN };
    clipped_rewards(&batch(), input, &ClippedRewardsConfig { beta: 0.0, ..Default::default() }, &mut out).unwrap();
    assert_eq!((none(&out), out[3]), (vec![false, true, false, false], 10.0));
    place_scores(&batch(), &[NAN, f64::NEG_INFINITY], &mut out).unwrap();
    assert_eq!((none(&out), out[3]), (vec![false, true, false, false], f64::NEG_INFINITY));
}

#[test]
fn weights_keep_it_in_what_they_weigh() {
    let mut out = [0.0; 4];
    let token = RolloutConfig::default();
    let sequence = RolloutConfig { level: RolloutLevel::Sequence, ..token };
    for (config, expected) in [
        (token, [true, false, false, false]),
        (sequence, [true, true, false, false]),
        (RolloutConfig { unscored: Unscored::Ignore, ..token }, [false; 4]),
        (RolloutConfig { normalize: BatchNormalize::ByLevel, ..token }, [true; 4]),
        (RolloutConfig { bound: WeightBound::Zero { lower: 0.5, upper: 2.0 }, ..token }, [true, false, false, false]),
    ] {
        rollout_weights(&batch(), spoilt(), &config, &mut out).unwrap();
        assert_eq!(none(&out), expected, "{config:?}");
    }
    let metrics = rollout_weight_metrics(&batch(), spoilt(), &token).unwrap();
    assert!(metrics.entries().any(|(_, value)| value.is_nan()));
    let mismatch = rollout_mismatch(&batch(), spoilt(), &MeanConfig::default()).unwrap();
    assert!(mismatch.entries().iter().any(|(_, value)| value.is_nan()));
    let difference = probability_difference(&batch(), spoilt()).unwrap();
    assert!(difference.mean.is_nan() && difference.std.is_nan() && difference.pearson.is_nan());
    // a ratio of 0 or ∞ is bounded, as any other
    let infinite = RolloutInput { old_log_probs: &[f64::NEG_INFINITY, -2.0, 0.0, 0.0], rollout_log_probs: &[-1.0; 4] };
    rollout_weights(&batch(), infinite, &token, &mut out).unwrap();
    assert!(out[0] > 0.0 && out[0] < 1e-8, "{out:?}");
    rollout_weights(&batch(), infinite, &RolloutConfig { log_bound: LogBound::Unbounded, ..token }, &mut out).unwrap();
    assert_eq!(out[0], 0.0);
}

#[test]
fn a_gate_lets_no_nan_through_but_a_clip_does() {
    let mut out = [9.0; 4];
    for statistic in [GateStatistic::Ratio, GateStatistic::BinaryKl, GateStatistic::TotalVariation] {
        let lower = if statistic == GateStatistic::Ratio { 0.5 } else { 0.0 };
        for (level, filtered) in [(GateLevel::Token, 0.25), (GateLevel::Sequence, 0.5)] {
            let config = GateConfig { level, statistic, lower, ..Default::default() };
            let report = rollout_gate(&batch(), spoilt(), &config, &mut out).unwrap();
            assert_eq!((out[0], none(&out), report.filtered), (0.0, vec![false; 4], filtered), "{config:?}");
            assert!(report.kl.is_nan());
        }
    }
    let clip = GateConfig { level: GateLevel::Token, mode: GateMode::Clip, ..Default::default() };
    rollout_gate(&batch(), spoilt(), &clip, &mut out).unwrap();
    assert_eq!(none(&out), [true, false, false, false]);
}

#[test]
fn masks_drop_it() {
    let mut keep = [true; 4];
    kl_mask(&batch(), spoilt(), &KlMaskConfig { tau: 1.0 }, &mut keep).unwrap();
    assert_eq!(keep, [false, true, true, true]);
    sequence_veto(&batch(), spoilt(), &VetoConfig { lower: 0.0, upper: f64::INFINITY }, &mut keep).unwrap();
    assert_eq!(keep, [false, false, true, true]);
    m2po_mask(&batch(), spoilt(), &M2poConfig { tau: 1.0 }, &mut [0.0; 4], &mut keep).unwrap();
    assert_eq!(keep, [false, true, true, true]);
    high_entropy_mask(&batch(), &SPOILT, &HighEntropyConfig { share: 0.5 }, &mut keep).unwrap();
    assert_eq!(keep, [false; 4]);
    let input = OffPolicyInput { log_probs: &CLEAN, old_log_probs: &SPOILT, advantages: &[-1.0; 4] };
    off_policy_sequence_mask(&batch(), input, &OffPolicyConfig::default(), &mut keep).unwrap();
    assert_eq!(keep, [false, false, true, true]);
    let ignored = OffPolicyConfig { unscored: Unscored::Ignore, ..Default::default() };
    off_policy_sequence_mask(&batch(), input, &ignored, &mut keep).unwrap();
    assert_eq!(keep, [true; 4]);
    // a NaN advantage is not positive
    let input = OffPolicyInput { log_probs: &[-3.0; 4], old_log_probs: &[-1.0; 4], advantages: &[NAN, 1.0, 0.0, -1.0] };
    off_policy_sequence_mask(&batch(), input, &ignored, &mut keep).unwrap();
    assert_eq!(keep, [false, true, true, false]);
    for (option, expected) in [
        (RejectionOption::TokenK1, [false, true, true, true]),
        (RejectionOption::TokenK3, [false, true, true, true]),
        (RejectionOption::SeqMeanK2, [false, false, true, true]),
    ] {
        let criteria = [Criterion { option, lower: 0.5, upper: 2.0 }];
        let config = RejectionConfig { criteria: &criteria, divisor: Divisor::Count };
        rollout_rejection(&batch(), spoilt(), &config, &mut keep).unwrap();
        assert_eq!(keep, expected, "{option:?}");
    }
}

#[test]
fn a_prompt_with_a_score_that_is_none() {
    let groups = Groups::contiguous(&[2, 2]).unwrap();
    let (mut scratch, mut keep) = ([Moments::default(); 2], [false; 2]);
    for (rule, expected) in [
        // not constant: it is not even equal to itself
        (GroupRule::NotConstant, [true, true]),
        (GroupRule::Spread { at_least: 0.0 }, [false, true]),
        (GroupRule::MeanBetween { low: 0.0, high: 1.0 }, [false, true]),
    ] {
        dynamic_sampling_filter(&groups, &[NAN, 1.0, 0.0, 1.0], &rule, &mut scratch, &mut keep).unwrap();
        assert_eq!(keep, expected, "{rule:?}");
    }
    let mut weights = [0.0; 2];
    pf_ppo_weights(&[NAN, 1.0], &PfPpoRule::default(), &mut weights).unwrap();
    assert_eq!(none(&weights), [true, false]);
    assert!(pf_ppo_indices(&weights, &ResampleConfig { seed: 0 }, &mut [0.0; 2], &mut [0]).is_err());
}

#[test]
fn statistics_keep_it_in_their_row() {
    let (mut rows, mut out) = ([0.0; 2], [0.0; 4]);
    sequence_sums(&batch(), &SPOILT, &mut rows).unwrap();
    assert_eq!(none(&rows), [true, false]);
    row_means(&batch(), &SPOILT, &MeanConfig::default(), &mut rows).unwrap();
    assert_eq!(none(&rows), [true, false]);
    row_normalize(&batch(), &SPOILT, &RowNormalizeConfig { floor: 1e-8 }, &mut out).unwrap();
    assert_eq!(none(&out), [true, true, false, false]);
    assert!(quantile(&batch(), &SPOILT, &QuantileConfig { level: 0.5 }).unwrap().is_nan());
    assert!(effective_sample_size(&batch(), &SPOILT).unwrap().is_nan());
    assert_eq!(
        quantile(&batch(), &[f64::NEG_INFINITY, 1.0, 2.0, f64::INFINITY], &QuantileConfig { level: 1.0 }),
        Ok(f64::INFINITY)
    );
    let input =
        VarianceProxyInput { old_log_probs: &SPOILT, sum_pi_squared: &[0.5; 4], advantages: &CLEAN, weights: None };
    let proxy =
        variance_proxy(&batch(), input, &VarianceProxyConfig { gradient_norm: 1.0, divisor: Divisor::Count }).unwrap();
    assert!(proxy.total_power.is_nan() && proxy.pure_noise.is_nan() && proxy.expected_w.is_nan());
    assert!(!proxy.expected_a_squared.is_nan());
}
