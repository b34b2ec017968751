//! Configs of the rollout functions that the tables do not cover: texts, and names that exclude each other.

use tokenwise::{
    control::{AdaptiveKl, AdaptiveKlConfig, FixedKl},
    metric::{Histogram, RunningMoments},
    reward::{reward_scale_clip, RewardScaleConfig},
    rollout::*,
    Batch, Error, Groups, Layout, Mask, Moments,
};

fn one() -> Batch<'static> {
    Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap()
}

const INPUT: RolloutInput<'static, f64> = RolloutInput { old_log_probs: &[-1.0], rollout_log_probs: &[-1.0] };

#[test]
fn texts_that_are_no_criteria() {
    let mut out = [Criterion::default(); 2];
    let before = out;
    let entry = |index, must_be: &str, error: Error| match error {
        Error::Entry { index: at, must_be: text, .. } => assert!(at == index && text.contains(must_be), "{error}"),
        other => panic!("{other}"),
    };
    let mut refused = |options, thresholds| parse_rejection(options, thresholds, &mut out).unwrap_err();
    entry(1, "the name of", refused("token_k1,token_k4", "1"));
    entry(0, "a positive number", refused("token_k2", "0.5_2.0"));
    entry(1, "a positive number", refused("token_k1,token_k2", "1,-0.5"));
    entry(0, "a lower bound", refused("token_k1", "1.5_0.5"));
    entry(0, "a positive number", refused("token_k1", "0.0_2.0"));
    entry(0, "a positive number", refused("token_k1", "much"));
    assert_eq!(refused("", "1"), Error::Length { what: "options", expected: 1, got: 0 });
    assert_eq!(refused("token_k1,token_k2", "1,2,3"), Error::Length { what: "thresholds", expected: 2, got: 3 });
    let all = "token_k1,token_k2,token_k3";
    assert_eq!(refused(all, "1"), Error::Length { what: "out", expected: 3, got: 2 });
    assert_eq!(out, before);
    for text in ["", "0", "-1", "inf", "nan", "2_1", "0_1", "1_2_3", "_2"] {
        assert!(matches!(parse_weight_bound(text), Err(Error::Entry { .. })), "{text:?}");
    }
}

#[test]
fn criteria_out_of_order() {
    let good = Criterion::default();
    let bad = [
        Criterion { upper: 0.0, ..good },
        Criterion { upper: f64::INFINITY, ..good },
        Criterion { lower: 3.0, ..good },
        Criterion { lower: 0.0, ..good },
        Criterion { lower: f64::NAN, ..good },
    ];
    for criterion in bad {
        let config = RejectionConfig { criteria: &[good, criterion], ..Default::default() };
        let mut keep = [true];
        let error = rollout_rejection(&one(), INPUT, &config, &mut keep).unwrap_err();
        assert!(matches!(error, Error::Entry { what: "criteria", index: 1, .. }), "{error}");
        let error = rollout_rejection_metrics(&one(), INPUT, &config, &mut [CriterionMetrics::default(); 2]);
        assert!(matches!(error, Err(Error::Entry { what: "criteria", index: 1, .. })));
        assert_eq!(keep, [true]);
    }
    // the others have no lower bound
    let unused = Criterion { option: RejectionOption::TokenK2, lower: f64::NAN, upper: 1.0 };
    rollout_rejection(&one(), INPUT, &RejectionConfig { criteria: &[unused], ..Default::default() }, &mut [true])
        .unwrap();
}

#[test]
fn gates_that_exclude_each_other() {
    let clip = GateConfig { level: GateLevel::Token, mode: GateMode::Clip, ..Default::default() };
    let divergence = GateConfig { level: GateLevel::Token, statistic: GateStatistic::BinaryKl, ..Default::default() };
    for (config, what) in [
        (GateConfig { level: GateLevel::Sequence, ..clip }, "mode"),
        (GateConfig { statistic: GateStatistic::TotalVariation, lower: 0.0, ..clip }, "mode"),
        (divergence, "lower"),
    ] {
        let mut weights = [9.0];
        match rollout_gate(&one(), INPUT, &config, &mut weights) {
            Err(Error::Config { what: named, .. }) => assert_eq!(named, what),
            other => panic!("{config:?}: {other:?}"),
        }
        assert_eq!(weights, [9.0]);
    }
    rollout_gate(&one(), INPUT, &clip, &mut [9.0]).unwrap();
    rollout_gate(&one(), INPUT, &GateConfig { lower: 0.0, ..divergence }, &mut [9.0]).unwrap();
}

#[test]
fn rules_scales_and_weights_out_of_their_domains() {
    let groups = Groups::from_ids(&[0, 0]).unwrap();
    for (low, high, named) in [(f64::NAN, 1.0, "low"), (1.0, 0.0, "high"), (0.0, f64::NAN, "high")] {
        let (mut scratch, mut keep) = ([Moments::default()], [true]);
        let rule = GroupRule::MeanBetween { low, high };
        let error = dynamic_sampling_filter(&groups, &[0.0, 1.0], &rule, &mut scratch, &mut keep);
        assert!(matches!(error, Err(Error::Config { what, .. }) if what == named));
        assert_eq!(keep, [true]);
    }
    for (scale, named) in [
        (RewardScaleConfig::Clip { low: 1.0, high: 0.0 }, "high"),
        (RewardScaleConfig::Map { from: (1.0, 1.0), to: (0.0, 1.0) }, "from"),
        (RewardScaleConfig::Map { from: (0.0, 1.0), to: (0.0, f64::NAN) }, "to"),
    ] {
        let error = reward_scale_clip(&[1.0], &scale, &mut [9.0]);
        assert!(matches!(error, Err(Error::Config { what, .. }) if what == named), "{scale:?}: {error:?}");
    }
    let draw = |weights: &[f64]| {
        pf_ppo_indices(weights, &ResampleConfig { seed: 1 }, &mut vec![0.0; weights.len()], &mut [0; 2]).unwrap_err()
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(draw(&[1.0, bad]), Error::Entry { what: "weights", index: 1, .. }));
    }
    assert!(matches!(draw(&[0.0, 0.0]), Error::Config { what: "weights", .. }));
    assert_eq!(draw(&[]), Error::Length { what: "weights", expected: 1, got: 0 });
}

#[test]
fn state_that_is_refused_a_step_stays_as_it_was() {
    let mut histogram = Histogram::default();
    assert_eq!(histogram.quantile(0.5), Err(Error::EmptyMask));
    assert!(matches!(histogram.quantile(1.5), Err(Error::Config { what: "level", .. })));
    assert_eq!(histogram.add(&one(), &[1.0, 2.0]), Err(Error::Length { what: "values", expected: 1, got: 2 }));
    assert_eq!(histogram.count(), 0);
    let mut running = RunningMoments::default();
    assert_eq!(running.update::<f64>(&[]), Err(Error::EmptyMask));
    assert_eq!(running, RunningMoments::default());
    let mut adaptive = AdaptiveKl::new(&AdaptiveKlConfig::default()).unwrap();
    let mut fixed = FixedKl::new(0.5).unwrap();
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(matches!(adaptive.update(bad, 1), Err(Error::Config { what: "kl", .. })));
        assert!(matches!(fixed.update(bad, 1), Err(Error::Config { what: "kl", .. })));
    }
    assert_eq!((adaptive.beta(), fixed.beta()), (1e-3, 0.5));
}
