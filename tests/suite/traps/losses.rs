//! Traps of losses and their aggregation.

use tokenwise::{
    loss::{
        aggregate, cispo, dppo_tv, gmpo, gspo, kl_cov, ppo_clip, value_loss, Aggregate, AggregateMode, Counts,
        DppoConfig, GlobalCounts, GmpoConfig, GspoConfig, GspoForm, KlCovConfig, PolicyLossInput, PpoConfig,
        ValueConfig, ValueFactor, ValueLossInput,
    },
    math::{exp, ln},
    Profile,
};

use super::{all_near, batch, near};

/// One token: its loss and gradient under a profile's clip.
fn clipped(ratio: f64, advantage: f64, config: &PpoConfig<'_>) -> (f64, f64) {
    let input =
        PolicyLossInput { log_probs: &[ln(ratio)], old_log_probs: &[0.0], advantages: &[advantage], weights: None };
    let mut grad = [9.0];
    let loss = ppo_clip(&batch(1, &[true]), input, config, &mut grad).unwrap().loss;
    (loss, grad[0])
}

/// 5. verl's dual clip is always on, that of the others only if asked for; TRL's `delta` caps both signs.
#[test]
fn dual_clip() {
    near(clipped(7.0, -1.0, &Profile::Verl0_9_1.ppo()).0, 3.0);
    near(clipped(7.0, -1.0, &Profile::Trl1_16.ppo()).0, 7.0);
    near(clipped(7.0, -1.0, &Profile::OpenRlhf0_11.ppo()).0, 7.0);
    let delta = |profile: Profile| PpoConfig { dual_clip: profile.dual_clip(1.1), ..profile.ppo() };
    near(clipped(1.15, 1.0, &delta(Profile::Trl1_16)).0, -1.1);
    near(clipped(1.15, 1.0, &delta(Profile::OpenRlhf0_11)).0, -1.15);
}

/// At a bound the gradient is whole, strictly beyond it 0.
#[test]
fn at_the_bound() {
    let config = PpoConfig { clip_low: 0.5, clip_high: 0.5, log_ratio_bound: None, ..Default::default() };
    let at = |log_ratio: f64, bound: f64| {
        let input =
            PolicyLossInput { log_probs: &[log_ratio], old_log_probs: &[0.0], advantages: &[1.0], weights: None };
        let config = PpoConfig { clip_high: exp(bound) - 1.0, ..config };
        let mut grad = [9.0];
        ppo_clip(&batch(1, &[true]), input, &config, &mut grad).unwrap();
        grad[0]
    };
    // 1 + (e^x − 1) is e^x again for this x
    assert_eq!(1.0 + (exp(0.5_f64) - 1.0), exp(0.5));
    assert_eq!(at(0.5, 0.5), -exp(0.5_f64));
    assert_eq!(at(0.5000001, 0.5), 0.0);
}

/// 6. The cap of DPPO is 3, whatever its documentation says.
#[test]
fn dppo_cap() {
    assert_eq!(DppoConfig::default().ratio_cap, 3.0);
    let input =
        PolicyLossInput { log_probs: &[ln(0.05)], old_log_probs: &[ln(0.01)], advantages: &[1.0], weights: None };
    let mut grad = [9.0];
    dppo_tv(&batch(1, &[true]), input, &DppoConfig::default(), &mut grad).unwrap();
    assert_eq!(grad, [-3.0]);
}

/// 7. GSPO: the two forms agree only where a sequence's advantages are equal and sequences weigh the same.
#[test]
fn gspo_forms() {
    let run = |advantages: [f64; 2], form| {
        let input = PolicyLossInput {
            log_probs: &[-0.4, -0.7],
            old_log_probs: &[-0.5, -0.5],
            advantages: &advantages,
            weights: None,
        };
        let config = GspoConfig { clip_low: 0.2, clip_high: 0.2, form, ..Default::default() };
        let mut grad = [9.0; 2];
        gspo(&batch(1, &[true, true]), input, &config, &mut grad).unwrap();
        grad
    };
    let s = exp(-0.05_f64);
    all_near(&run([1.0, 1.0], GspoForm::Token), &[-0.5 * s, -0.5 * s]);
    all_near(&run([1.0, 1.0], GspoForm::Sequence), &[-0.5 * s, -0.5 * s]);
    all_near(&run([2.0, 0.0], GspoForm::Token), &[-s, 0.0]);
    all_near(&run([2.0, 0.0], GspoForm::Sequence), &[-0.5 * s, -0.5 * s]);
}

/// 8. GMPO clips the log-ratio at ±ε, not the ratio at 1 ± ε, and averages over all rows, empty ones too.
#[test]
fn gmpo_in_log_space() {
    let input = PolicyLossInput {
        log_probs: &[0.5, f64::NAN],
        old_log_probs: &[0.0, f64::NAN],
        advantages: &[1.0, f64::NAN],
        weights: None,
    };
    let mut grad = [9.0; 2];
    let config = GmpoConfig { clip_low: 0.2, clip_high: 0.28, ..Default::default() };
    let result = gmpo(&batch(2, &[true, false]), input, &config, &mut grad).unwrap();
    near(result.loss, -exp(0.28_f64) / 2.0);
    assert_eq!((grad, result.clip_fraction), ([0.0, 0.0], 1.0));
}

/// 9. CISPO: a bound on 1 ± ε, or the cap itself.
#[test]
fn cispo_bounds() {
    let run = |profile: Profile| {
        let input = PolicyLossInput { log_probs: &[ln(4.0)], old_log_probs: &[0.0], advantages: &[1.0], weights: None };
        let mut grad = [9.0];
        cispo(&batch(1, &[true]), input, &profile.cispo(), &mut grad).unwrap();
        grad[0]
    };
    near(run(Profile::Verl0_9_1), -1.2);
    near(run(Profile::Trl1_16), -4.0);
}

/// 12. and 13. The counts of a whole step: what each mode divides by, and the factor of the ranks.
#[test]
fn global_counts() {
    let run = |mode, counts| {
        let mut weights = [9.0; 4];
        let config = Aggregate { mode, counts, ..Default::default() };
        aggregate(&batch(2, &[true, false, true, true]), &[1.0, 2.0, 3.0, 4.0], &config, &mut weights).unwrap()
    };
    let global = Counts::Global(GlobalCounts { tokens: 10, sequences: 8, prompts: 0, ranks: 2 });
    for (mode, value) in [
        (AggregateMode::TokenMean, 1.6),
        (AggregateMode::TokenSum, 16.0),
        (AggregateMode::SequenceMeanTokenSum, 2.0),
        (AggregateMode::SequenceMeanTokenSumNorm { scale: 5.0 }, 0.4),
        (AggregateMode::SequenceMeanTokenMean, 1.125),
    ] {
        near(run(mode, global), value);
    }
    // the sum over a constant length is still divided by the sequences
    near(run(AggregateMode::SequenceMeanTokenSumNorm { scale: 5.0 }, Counts::Local), 0.8);
}

/// kl_cov reports a mean of absolute log-ratios, and its price is 0.1 by default.
#[test]
fn kl_cov_reports_absolute_kl() {
    assert_eq!(KlCovConfig::default().kl_coef, 0.1);
    let input =
        PolicyLossInput { log_probs: &[0.5, -0.5], old_log_probs: &[0.0, 0.0], advantages: &[1.0, 1.0], weights: None };
    let mut grad = [9.0; 2];
    let result = kl_cov(&batch(1, &[true, true]), input, &KlCovConfig::default(), &mut grad).unwrap();
    assert_eq!(result.kl, 0.5);
}

/// The value loss has a ½, but not everywhere.
#[test]
fn half_of_the_value_loss() {
    let run = |factor| {
        let input = ValueLossInput { predictions: &[0.3], values: &[0.0], returns: &[1.0] };
        let config = ValueConfig { clip: Some(0.2), factor, ..Default::default() };
        value_loss(&batch(1, &[true]), input, &config, &mut [9.0]).unwrap().loss
    };
    near(run(ValueFactor::Half), 0.32);
    near(run(ValueFactor::Whole), 0.64);
}
