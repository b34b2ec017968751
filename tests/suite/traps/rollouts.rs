//! Traps of the correction for a sampler that is not the trainer.

use tokenwise::{
    loss::{ppo_clip, PolicyLossInput, PpoConfig},
    math::ln,
    rollout::{
        parse_rejection, rollout_gate, rollout_rejection, rollout_weight_metrics, rollout_weights, Criterion,
        GateConfig, GateLevel, GateMode, GateStatistic, RejectionConfig, RejectionOption, RolloutConfig, RolloutInput,
        RolloutLevel, WeightBound,
    },
    Divisor,
};

use super::{all_near, batch, near};

/// 14. Rejection by k1 looks at −log ρ, so it accepts the reciprocal band. A band is legal for k1 only.
#[test]
fn rejection_by_k1_is_reciprocal() {
    let none = Criterion { option: RejectionOption::ALL[0], lower: 0.0, upper: 1.0 };
    let mut criteria = [none; 2];
    let count = parse_rejection("token_k1", "0.5_4.0", &mut criteria).unwrap();
    let old = [ln(0.3), ln(3.0), ln(1.9)];
    let input = RolloutInput { old_log_probs: &old, rollout_log_probs: &[0.0; 3] };
    let mut keep = [false; 3];
    let config = RejectionConfig { criteria: &criteria[..count], divisor: Divisor::Count };
    rollout_rejection(&batch(1, &[true; 3]), input, &config, &mut keep).unwrap();
    assert_eq!(keep, [true, false, true]);
    assert!(parse_rejection("token_k3", "0.5_4.0", &mut criteria).is_err());
}

fn weights(config: &RolloutConfig) -> [f64; 3] {
    let old = [ln(0.1), ln(1.5), ln(9.0)];
    let input = RolloutInput { old_log_probs: &old, rollout_log_probs: &[0.0; 3] };
    let mut weights = [9.0; 3];
    rollout_weights(&batch(1, &[true; 3]), input, config, &mut weights).unwrap();
    weights
}

/// 15. Truncated from above only, clamped on both sides, zeroed outside, or masked by sequence with whole token ratios.
#[test]
fn four_kinds_of_weights() {
    let bounded = |bound| weights(&RolloutConfig { bound, ..Default::default() });
    all_near(&bounded(WeightBound::Truncate { upper: 2.0 }), &[0.1, 1.5, 2.0]);
    all_near(&bounded(WeightBound::Clamp { lower: 0.5, upper: 5.0 }), &[0.5, 1.5, 5.0]);
    all_near(&bounded(WeightBound::Zero { lower: 0.5, upper: 5.0 }), &[0.0, 1.5, 0.0]);
    let old = [ln(0.1), ln(1.5), ln(9.0)];
    let input = RolloutInput { old_log_probs: &old, rollout_log_probs: &[0.0; 3] };
    let gate = GateConfig {
        level: GateLevel::Sequence,
        statistic: GateStatistic::Ratio,
        mode: GateMode::Mask,
        lower: 0.5,
        upper: 5.0,
    };
    let mut out = [9.0; 3];
    rollout_gate(&batch(1, &[true; 3]), input, &gate, &mut out).unwrap();
    all_near(&out, &[0.1, 1.5, 9.0]);
    // a product is not a geometric mean
    let product =
        weights(&RolloutConfig { level: RolloutLevel::Sequence, bound: WeightBound::Unbounded, ..Default::default() });
    let mean =
        weights(&RolloutConfig { level: RolloutLevel::Geometric, bound: WeightBound::Unbounded, ..Default::default() });
    near(product[0], 1.35);
    near(mean[0], 1.35_f64.cbrt());
}

/// 16. In bypass mode the ratio to the sampler is the correction: no weight is applied on top.
#[test]
fn bypass_has_no_weights() {
    let run = |weights: Option<&[f64]>| {
        let input = PolicyLossInput { log_probs: &[-0.4], old_log_probs: &[-0.5], advantages: &[1.0], weights };
        ppo_clip(&batch(1, &[true]), input, &PpoConfig::default(), &mut [9.0]).unwrap().loss
    };
    assert_eq!(run(None), run(Some(&[1.0])));
    assert_ne!(run(None), run(Some(&[1.1])));
}

/// 17. The largest weight logged is the applied one for tokens, the raw one for sequences.
#[test]
fn logged_extremes() {
    let old = [ln(0.1), ln(1.5), ln(90.0)];
    let input = RolloutInput { old_log_probs: &old, rollout_log_probs: &[0.0; 3] };
    let max = |level| {
        let config = RolloutConfig { level, bound: WeightBound::Truncate { upper: 2.0 }, ..Default::default() };
        rollout_weight_metrics(&batch(1, &[true; 3]), input, &config).unwrap().max
    };
    near(max(RolloutLevel::Token), 2.0);
    near(max(RolloutLevel::Sequence), 13.5);
}
