//! The policy losses beyond the clip.

use tokenwise::loss::*;
use tokenwise_tests::generate::{Column, Number, Random};

use super::{stays_in_its_token, stays_in_sums, with_nan, world};
use crate::{
    case::Case,
    dual_game::{DualGame, StructuralWeights},
    naive::{
        covariance_loss::{ClipCov, KlCov},
        sequence_loss::{Gmpo, Gspo, Gvpo, Luspo, Vespo},
        token_loss::{Cispo, DppoKl, DppoTv, Dro, PositiveNll, Reinforce, Sapo, TisLoss, Topr},
    },
};

const POLICY: [Column; 3] = [Column::LogProbs, Column::OldLogProbs, Column::Advantages];

fn stays<C: Case>(columns: &[Column]) {
    stays_in_its_token::<C>(columns);
    for &column in columns {
        stays_in_sums::<C>(column, &[0]);
    }
}

#[test]
fn nan_stays() {
    // REINFORCE uses the old policy only for a metric
    stays::<Reinforce>(&[Column::LogProbs, Column::Advantages]);
    stays_in_sums::<Reinforce>(Column::OldLogProbs, &[3]);
    stays::<Cispo>(&POLICY);
    stays::<TisLoss>(&POLICY);
    stays::<Sapo>(&POLICY);
    stays::<Dro>(&POLICY);
    stays::<DppoTv>(&POLICY);
    stays::<DppoKl>(&POLICY);
    stays::<Gspo>(&POLICY);
    stays::<Luspo>(&POLICY);
    stays::<Gmpo>(&POLICY);
    stays::<Vespo>(&POLICY);
    stays::<ClipCov>(&POLICY);
    stays::<KlCov>(&POLICY);
    stays::<Gvpo>(&POLICY);
    stays::<Topr>(&[Column::LogProbs, Column::Advantages]);
    stays::<DualGame>(&POLICY);
    stays_in_its_token::<StructuralWeights>(&[Column::LogProbs, Column::Advantages, Column::Weights]);
}

/// Rollout weights are optional.
fn stays_in_weights<C: Case>(weighed: fn(&C::Config) -> bool) {
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

#[test]
fn nan_stays_in_weights() {
    stays_in_weights::<Reinforce>(|choice| choice.weighed);
    stays_in_weights::<Cispo>(|choice| choice.weighed);
    stays_in_weights::<TisLoss>(|choice| choice.weighed);
    stays_in_weights::<Sapo>(|choice| choice.weighed);
    stays_in_weights::<Dro>(|choice| choice.weighed);
    stays_in_weights::<DppoTv>(|choice| choice.weighed);
    stays_in_weights::<DppoKl>(|choice| choice.weighed);
    stays_in_weights::<Gspo>(|choice| choice.weighed);
    stays_in_weights::<Vespo>(|choice| choice.weighed);
    stays_in_weights::<Topr>(|choice| choice.weighed);
    stays_in_weights::<ClipCov>(|choice| choice.weighed);
    stays_in_weights::<KlCov>(|choice| choice.weighed);
    stays_in_weights::<Luspo>(|config| config.1);
    stays_in_weights::<Gmpo>(|config| config.1);
    // it does not use them
    stays_in_weights::<Gvpo>(|_| false);
}

/// The old policy weights bad responses only; a NaN score is neither good nor bad.
#[test]
fn nan_stays_in_scores() {
    for seed in 0..40 {
        let (flat, slot) = world::<f32>(seed);
        let (of_slot, outcome) = with_nan::<Topr, f32>(seed, Column::OldLogProbs);
        let bad = flat.scores[0] <= 0.0;
        assert_eq!((of_slot[0].is_nan(), outcome.numbers[0].is_nan()), (bad, bad), "{} seed {seed}", Topr::NAME);
        let (of_slot, outcome) = with_nan::<PositiveNll, f32>(seed, Column::LogProbs);
        assert_eq!(
            (of_slot[0].is_nan(), outcome.numbers[0].is_nan()),
            (!bad, !bad),
            "{} seed {seed}",
            PositiveNll::NAME
        );

        let mut unknown = flat.clone();
        unknown.scores[0] = f32::NAN;
        let outcome = Topr::run(&unknown, Topr::config(&mut Random::new(seed))).unwrap();
        assert!(outcome.numbers[0].is_nan() && outcome.tokens[0][slot].is_nan(), "{} seed {seed}", Topr::NAME);
        assert!(unknown.rows[1].clone().all(|slot| !outcome.tokens[0][slot].is_nan()), "{} seed {seed}", Topr::NAME);
        let outcome = PositiveNll::run(&unknown, PositiveNll::config(&mut Random::new(seed))).unwrap();
        assert!(outcome.numbers[0].is_nan() && outcome.tokens[0][slot].is_nan(), "{} seed {seed}", PositiveNll::NAME);
    }
}

/// A NaN is neither inside nor outside a bound: the numerator of a share does not count it, the denominator does.
#[test]
fn shares_do_not_count_nan() {
    fn check<C: Case>() {
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
    check::<Cispo>();
    check::<TisLoss>();
    check::<DppoTv>();
    check::<DppoKl>();
    check::<Gmpo>();
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
