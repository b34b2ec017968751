//! The policy losses beyond the clip.

use tokenwise::loss::*;
use tokenwise_tests::generate::{Column, Number, Random};

use super::{with_nan, world};
use crate::case::Case;

/// NaN in a rollout weight stays if the config is one with weights.
pub(crate) fn nan_stays_in_weights<C: Case>(weighed: fn(&C::Config) -> bool) {
    fn check<C: Case, R: Number>(seed: u64, weighed: bool) {
        let (of_slot, outcome) = with_nan::<C, R>(seed, Column::Weights);
        assert_eq!(of_slot[0].is_nan(), weighed, "{} seed {seed}: gradient", C::NAME);
        assert_eq!(outcome.numbers[0].is_nan(), weighed, "{} seed {seed}: loss", C::NAME);
    }
    for seed in 0..40 {
        let weighed = weighed(&C::config(&mut Random::new(seed)));
        check::<C, f32>(seed, weighed);
        check::<C, f64>(seed, weighed);
    }
}

/// A column matters in the responses whose score is above 0, or in the others. A NaN score is neither, and `spreads` to
/// the other responses of the batch if the loss divides by a number that depends on all scores.
pub(crate) fn nan_counts_by_score<C: Case>(column: Column, above: bool, spreads: bool) {
    for seed in 0..40 {
        let (flat, slot) = world::<f32>(seed);
        let (of_slot, outcome) = with_nan::<C, f32>(seed, column);
        let counts = (flat.scores[0] > 0.0) == above;
        assert_eq!((of_slot[0].is_nan(), outcome.numbers[0].is_nan()), (counts, counts), "{} seed {seed}", C::NAME);

        let mut unknown = flat.clone();
        unknown.scores[0] = f32::NAN;
        let outcome = C::run(&unknown, C::config(&mut Random::new(seed))).unwrap();
        assert!(outcome.numbers[0].is_nan() && outcome.tokens[0][slot].is_nan(), "{} seed {seed}", C::NAME);
        let spread = unknown.rows[1].clone().any(|slot| outcome.tokens[0][slot].is_nan());
        assert!(spreads || !spread, "{} seed {seed}", C::NAME);
    }
}

/// A NaN is neither inside nor outside a bound: the numerator of a share does not count it, the denominator does.
pub(crate) fn shares_do_not_count_nan<C: Case>() {
    for seed in 0..40 {
        let (flat, _) = world::<f32>(seed);
        let clean = C::run(&flat, C::config(&mut Random::new(seed))).unwrap();
        let (_, outcome) = with_nan::<C, f32>(seed, Column::LogProbs);
        let kept = flat.batch().kept() as f64;
        for place in [1, 2] {
            let (got, before) = (outcome.numbers[place] * kept, clean.numbers[place] * kept);
            let fits = got.round() == before.round() || got.round() + 1.0 == before.round();
            assert!(fits, "{} seed {seed}: {got} of {kept}, {before} before", C::NAME);
        }
    }
}

/// One sequence, all kept.
fn grad_of(
    log_probs: &[f64],
    old_log_probs: &[f64],
    run: impl FnOnce(&tokenwise::Batch<'_>, PolicyLossInput<'_, f64>, &mut [f64]) -> tokenwise::Result<PolicyLoss>,
) -> (f64, Vec<f64>) {
    let keep = vec![true; log_probs.len()];
    let layout = tokenwise::Layout::padded(1, keep.len()).unwrap();
    let batch = tokenwise::Batch::new(layout, tokenwise::Mask::new(&keep)).unwrap();
    let (advantages, mut grad) = (vec![1.0; keep.len()], vec![9.0; keep.len()]);
    let input = PolicyLossInput { log_probs, old_log_probs, advantages: &advantages, weights: None };
    let loss = run(&batch, input, &mut grad).unwrap().loss;
    (loss, grad)
}

/// Far above ratio 1 the gate is nearly 1, and the gradient is what is left of it.
#[test]
fn the_gate_of_sapo_keeps_its_digits() {
    for log_ratio in [1.0_f64, 2.0, 3.0, 3.5] {
        let config = SapoConfig::default();
        let (_, grad) = grad_of(&[-1.0], &[-1.0 - log_ratio], |batch, input, grad| sapo(batch, input, &config, grad));
        let (ratio, tail) = (log_ratio.exp(), (-config.tau_positive * (log_ratio.exp() - 1.0)).exp());
        let want = -4.0 * ratio * tail / ((1.0 + tail) * (1.0 + tail));
        assert!((grad[0] / want - 1.0).abs() < 1e-13, "{log_ratio}: {} {want}", grad[0]);
    }
}

/// Tokens with probability 0 under the old policy have an infinite ratio.
#[test]
fn infinite_ratios() {
    let (new, old) = ([-1.0, -1.0], [f64::NEG_INFINITY, -1.0]);
    let bounds = CispoBounds::Absolute { high: 1.5 };
    for log_ratio_bound in [None, Some(20.0)] {
        let config = CispoConfig { bounds, log_ratio_bound, ..Default::default() };
        let got = grad_of(&new, &old, |batch, input, grad| cispo(batch, input, &config, grad));
        assert_eq!(got, (1.25, vec![-0.75, -0.5]));
        // beyond the gate the slope is 0
        let config = SapoConfig { log_ratio_bound, ..Default::default() };
        let got = grad_of(&new, &old, |batch, input, grad| sapo(batch, input, &config, grad));
        assert_eq!(got, (-3.0, vec![0.0, -0.5]));
    }
    let got = grad_of(&new, &old, |batch, input, grad| tis_loss(batch, input, &TisLossConfig::default(), grad));
    assert_eq!(got, (1.0, vec![-0.5, -0.5]));
    let config = GspoConfig { clip_high: 0.5, ..Default::default() };
    let got = grad_of(&new, &old, |batch, input, grad| gspo(batch, input, &config, grad));
    assert_eq!(got, (-1.5, vec![0.0, 0.0]));
}
