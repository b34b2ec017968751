use tokenwise::{divergence::*, loss::*, metric::*, MeanConfig, PairInput};
use tokenwise_tests::{
    generate::{Column, Number, Random, Spec, World},
    tolerance::{assert_bits, Basis},
};

use crate::{
    case::assert_close,
    divergence::ESTIMATORS,
    loss::{dual_clip, policy_input},
    properties::{check, skip, unless_too_small},
};

fn means_are_means_of_estimates<R: Number>(spec: Spec) {
    let flat = World::<R>::new(spec).packed();
    let (log_probs, ref_log_probs) = (flat.column(Column::LogProbs), flat.column(Column::RefLogProbs));
    let input = KlInput { log_probs, ref_log_probs };
    let Some(means) = unless_too_small(kl_means(&flat.batch(), input, &MeanConfig::default())) else { return };
    for (estimator, got) in ESTIMATORS.into_iter().zip([means.k1, means.abs, means.k2, means.k3]) {
        let mut out = vec![R::nan(); flat.tokens()];
        kl_estimate(&flat.batch(), input, &KlConfig { estimator, ..Default::default() }, &mut out).unwrap();
        assert_bits("mean of the estimates", &[got], &[mean(&flat.batch(), &out, &MeanConfig::default()).unwrap()]);
    }
}

#[test]
fn kl_means_are_means_of_estimates() {
    check(means_are_means_of_estimates::<f32>);
    check(means_are_means_of_estimates::<f64>);
}

#[test]
fn clip_fractions_are_those_of_the_loss() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let PolicyLossInput { log_probs, old_log_probs, advantages, .. } = policy_input(&flat);
        let dual_clip = dual_clip(&mut Random::new(spec.seed));
        let config = ClipConfig { dual_clip, ..Default::default() };
        let shares = clip_fractions(&flat.batch(), RatioInput { log_probs, old_log_probs, advantages }, &config);
        let Some(shares) = unless_too_small(shares) else { return };
        let mut grad = vec![f32::NAN; flat.tokens()];
        let config = PpoConfig { dual_clip, log_ratio_bound: None, ..Default::default() };
        let loss = ppo_clip(&flat.batch(), policy_input(&flat), &config, &mut grad).unwrap();
        assert_close::<crate::metric::Mean>(Basis::F64, &[shares.clipped], &[loss.clip_fraction]);
        assert_bits("dual", &[shares.dual], &[loss.clip_fraction_lower]);
    });
}

#[test]
fn statistics_of_equal_things() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let batch = flat.batch();
        if batch.kept() < 3 {
            return skip();
        }
        let x = flat.column(Column::Values);
        let opposite: Vec<f64> = x.iter().map(|x| 1.0 - 2.0 * x).collect();
        let with_itself = correlation(&batch, PairInput { x, y: x }).unwrap();
        let with_opposite = correlation(&batch, PairInput { x, y: &opposite }).unwrap();
        assert_close::<crate::metric::Correlation>(Basis::F64, &[with_itself, with_opposite], &[1.0, -1.0]);

        let config = ExplainedVarianceConfig::default();
        let foreseen = explained_variance(&batch, ExplainedVarianceInput { values: x, returns: x }, &config).unwrap();
        assert_close::<crate::metric::ExplainedVariance>(Basis::F64, &[foreseen], &[1.0]);

        let constant = vec![0.1; flat.tokens()];
        assert_bits("mean", &[mean(&batch, &constant, &MeanConfig::default()).unwrap() as f32], &[0.1]);
        let spread = variance(&batch, &constant, &VarianceConfig::default()).unwrap();
        assert!(spread < f64::EPSILON * f64::EPSILON, "variance {spread:e} of a constant");
        let guess = ExplainedVarianceInput { values: &constant, returns: x };
        let config = ExplainedVarianceConfig { epsilon: 0.0, ..config };
        let foreseen = explained_variance(&batch, guess, &config).unwrap();
        assert_close::<crate::metric::ExplainedVariance>(Basis::F64, &[foreseen], &[0.0]);
    });
}
