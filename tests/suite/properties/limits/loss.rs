use tokenwise::{loss::*, MeanConfig};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random, Spec, World},
    tolerance::{assert_bits, Basis},
};

use crate::{
    case::assert_close,
    loss::{policy_input, value_input, Weighing},
    properties::{check, skip, unless_too_small},
};

/// A batch, an aggregation, and its weights.
fn weighed<R: Number>(spec: Spec) -> Option<(Flat<R>, Weighing, Vec<R>)> {
    let flat = World::<R>::new(spec).packed();
    let weighing = Weighing::new(&mut Random::new(spec.seed ^ 0x10));
    let mut weights = vec![R::nan(); flat.tokens()];
    let zeros = vec![R::zero(); flat.tokens()];
    unless_too_small(weighing.with(&flat, |config| aggregate(&flat.batch(), &zeros, &config, &mut weights)))?;
    Some((flat, weighing, weights))
}

fn before_the_first_step<R: Number>(spec: Spec) {
    let Some((flat, weighing, weights)) = weighed::<R>(spec) else { return };
    let input = PolicyLossInput { old_log_probs: flat.column(Column::LogProbs), ..policy_input(&flat) };
    let (mut plain, mut clipped) = (vec![R::nan(); flat.tokens()], vec![R::nan(); flat.tokens()]);
    let (loss, result, mean) = weighing.with(&flat, |aggregate| {
        let config = SurrogateConfig { aggregate, ..Default::default() };
        let loss = surrogate(&flat.batch(), input, &config, &mut plain).unwrap();
        let config = PpoConfig { aggregate, ..Default::default() };
        let result = ppo_clip(&flat.batch(), input, &config, &mut clipped).unwrap();
        let mut unused = vec![R::zero(); flat.tokens()];
        (loss, result, tokenwise::loss::aggregate(&flat.batch(), input.advantages, &aggregate, &mut unused).unwrap())
    });
    // ratio 1: the loss is minus the aggregated advantage, the gradient that of REINFORCE
    assert_bits("loss", &[loss], &[0.0 - mean]);
    let mut want = PolicyLoss::default();
    want.loss = loss;
    assert_eq!(result, want);
    assert_bits("gradient", &clipped, &plain);
    let reinforce = |i: usize| if flat.keep[i] { -weights[i] * input.advantages[i] } else { R::zero() };
    assert_bits("REINFORCE", &plain, &(0..plain.len()).map(reinforce).collect::<Vec<R>>());
}

#[test]
fn before_the_first_step_nothing_is_clipped() {
    check(before_the_first_step::<f32>);
    check(before_the_first_step::<f64>);
}

#[test]
fn a_clip_too_wide_to_hold_is_none() {
    check(|spec| {
        let Some((flat, weighing, _)) = weighed::<f64>(spec) else { return };
        let (mut plain, mut clipped) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
        weighing.with(&flat, |aggregate| {
            let config = SurrogateConfig { aggregate, ..Default::default() };
            let loss = surrogate(&flat.batch(), policy_input(&flat), &config, &mut plain).unwrap();
            let wide =
                PpoConfig { aggregate, clip_low: 1.0, clip_high: 1e9, log_ratio_bound: None, ..Default::default() };
            for dual_clip in [DualClip::Off, DualClip::NegativeOnly(1e9), DualClip::BothSigns(1e9)] {
                let config = PpoConfig { dual_clip, ..wide };
                let result = ppo_clip(&flat.batch(), policy_input(&flat), &config, &mut clipped).unwrap();
                assert_bits("gradient", &clipped, &plain);
                assert_bits("loss", &[result.loss], &[loss]);
                assert_eq!((result.clip_fraction, result.clip_fraction_lower), (0.0, 0.0));
            }
        });
    });
}

#[test]
fn the_clip_never_lowers_the_loss() {
    check(|spec| {
        let Some((flat, _, _)) = weighed::<f64>(spec) else { return };
        let mut grad = vec![f64::NAN; flat.tokens()];
        let plain = surrogate(&flat.batch(), policy_input(&flat), &SurrogateConfig::default(), &mut grad);
        let Some(plain) = unless_too_small(plain) else { return };
        let clipped = ppo_clip(&flat.batch(), policy_input(&flat), &PpoConfig::default(), &mut grad).unwrap();
        assert!(clipped.loss >= plain - 1e-12, "{} below {plain}", clipped.loss);
        let dual = PpoConfig { dual_clip: DualClip::NegativeOnly(3.0), ..Default::default() };
        let dual = ppo_clip(&flat.batch(), policy_input(&flat), &dual, &mut grad).unwrap();
        assert!(dual.loss <= clipped.loss, "{} above {}", dual.loss, clipped.loss);
    });
}

#[test]
fn without_a_clip_the_value_loss_is_the_squared_error() {
    check(|spec| {
        let Some((flat, weighing, weights)) = weighed::<f64>(spec) else { return };
        let input = value_input(&flat);
        let square = |i: usize| (input.predictions[i] - input.returns[i]) * (input.predictions[i] - input.returns[i]);
        let squares: Vec<f64> = (0..flat.tokens()).map(square).collect();
        let (mut grad, mut unused) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
        let (result, whole, mean) = weighing.with(&flat, |aggregate| {
            let config = ValueConfig { clip: None, aggregate, ..Default::default() };
            let whole = ValueConfig { factor: ValueFactor::Whole, ..config };
            (
                value_loss(&flat.batch(), input, &config, &mut grad).unwrap(),
                value_loss(&flat.batch(), input, &whole, &mut unused).unwrap(),
                tokenwise::loss::aggregate(&flat.batch(), &squares, &aggregate, &mut unused.clone()).unwrap(),
            )
        });
        assert_close::<crate::loss::ValueLoss>(Basis::F64, &[result.loss, whole.loss], &[mean / 2.0, mean]);
        assert_eq!(result.clip_fraction, 0.0);
        let slope = |i: usize| if flat.keep[i] { weights[i] * (input.predictions[i] - input.returns[i]) } else { 0.0 };
        assert_bits("gradient", &grad, &(0..grad.len()).map(slope).collect::<Vec<f64>>());
    });
}

#[test]
fn modes_meet_where_sequences_are_alike() {
    check(|spec| {
        let world = World::<f64>::new(Spec { sequences: 1, ..spec });
        let flat = world.packed();
        let losses = flat.column(Column::Kl);
        let kept = flat.batch().kept();
        if kept == 0 {
            return skip();
        }
        let mut weights = vec![f64::NAN; flat.tokens()];
        let mut run = |mode| {
            let config = Aggregate { mode, ..Default::default() };
            aggregate(&flat.batch(), losses, &config, &mut weights).unwrap()
        };
        // one sequence: its mean is the mean of its tokens and of its prompt, and a constant length may be its own
        let mean = run(AggregateMode::TokenMean);
        let (groups, tokens) = (flat.groups(), [kept as u64]);
        let alike = [
            run(AggregateMode::SequenceMeanTokenMean),
            run(AggregateMode::SequenceMeanTokenSumNorm { scale: kept as f64 }),
            run(AggregateMode::PromptMean { groups, tokens: &tokens }),
        ];
        assert_close::<crate::loss::AggregateLoss>(Basis::F64, &alike, &[mean; 3]);
        assert_bits("sums", &[run(AggregateMode::TokenSum)], &[run(AggregateMode::SequenceMeanTokenSum)]);
        let by_metric = tokenwise::metric::mean(&flat.batch(), losses, &MeanConfig::default()).unwrap();
        assert_close::<crate::metric::Mean>(Basis::F64, &[by_metric], &[mean]);
    });
}
