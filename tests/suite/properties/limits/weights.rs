//! What the policy losses have in common: the surrogate's gradient at ratio 1, and rollout weights.

use tokenwise::{loss::*, Divisor, Result};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random, Spec, World},
    tolerance::assert_bits,
};

use crate::{
    loss::{policy_input, weighed_input, Weighing},
    properties::check,
};

pub(super) type Loss<R> = fn(&Flat<R>, PolicyLossInput<'_, R>, Aggregate<'_>, &mut [R]) -> Result<f64>;

fn token_losses<R: Number>() -> Vec<(&'static str, Loss<R>)> {
    vec![
        ("reinforce", |flat, input, aggregate, grad| {
            Ok(reinforce(&flat.batch(), input, &ReinforceConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("cispo", |flat, input, aggregate, grad| {
            Ok(cispo(&flat.batch(), input, &CispoConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("tis_loss", |flat, input, aggregate, grad| {
            Ok(tis_loss(&flat.batch(), input, &TisLossConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("sapo", |flat, input, aggregate, grad| {
            Ok(sapo(&flat.batch(), input, &SapoConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("dro", |flat, input, aggregate, grad| {
            let config = DroConfig { beta: 0.5, aggregate, divisor: Divisor::Count };
            Ok(dro(&flat.batch(), input, &config, grad)?.loss)
        }),
        ("dppo_tv", |flat, input, aggregate, grad| {
            Ok(dppo_tv(&flat.batch(), input, &DppoConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("dppo_kl", |flat, input, aggregate, grad| {
            Ok(dppo_kl(&flat.batch(), input, &DppoConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("gspo by token", |flat, input, aggregate, grad| {
            let config = GspoConfig { form: GspoForm::Token, aggregate, ..Default::default() };
            Ok(gspo(&flat.batch(), input, &config, grad)?.loss)
        }),
        ("topr", |flat, input, aggregate, grad| {
            topr(&flat.batch(), input, &flat.scores, &ToprConfig { aggregate, ..Default::default() }, grad)
        }),
        ("clip_cov", |flat, input, aggregate, grad| {
            let config = ClipCovConfig { aggregate, ..Default::default() };
            Ok(clip_cov(&flat.batch(), input, &config, &vec![false; flat.tokens()], grad)?.loss)
        }),
        ("kl_cov", |flat, input, aggregate, grad| {
            Ok(kl_cov(&flat.batch(), input, &KlCovConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("surrogate", |flat, input, aggregate, grad| {
            surrogate(&flat.batch(), input, &SurrogateConfig { aggregate, ..Default::default() }, grad)
        }),
        ("ppo_clip", |flat, input, aggregate, grad| {
            Ok(ppo_clip(&flat.batch(), input, &PpoConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
    ]
}

/// Those whose weights are no mere factors.
fn other_losses<R: Number>() -> Vec<(&'static str, Loss<R>)> {
    vec![
        ("gspo", |flat, input, aggregate, grad| {
            Ok(gspo(&flat.batch(), input, &GspoConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
        ("luspo", |flat, input, _, grad| Ok(luspo(&flat.batch(), input, &LuspoConfig::default(), grad)?.loss)),
        ("vespo", |flat, input, aggregate, grad| {
            Ok(vespo(&flat.batch(), input, &VespoConfig { aggregate, ..Default::default() }, grad)?.loss)
        }),
    ]
}

/// A batch and an aggregation it can have.
pub(super) fn setting<R: Number>(spec: Spec) -> Option<(Flat<R>, Weighing)> {
    let flat = World::<R>::new(spec).packed();
    let weighing = Weighing::new(&mut Random::new(spec.seed ^ 0x11));
    (flat.batch().kept() > 0).then_some((flat, weighing))
}

pub(super) fn run<R: Number>(
    flat: &Flat<R>,
    loss: Loss<R>,
    input: PolicyLossInput<'_, R>,
    weighing: Weighing,
) -> (f64, Vec<R>) {
    let mut grad = vec![R::nan(); flat.tokens()];
    let loss = weighing.with(flat, |aggregate| loss(flat, input, aggregate, &mut grad)).unwrap();
    (loss, grad)
}

fn at_ratio_one<R: Number>(spec: Spec) {
    let Some((flat, weighing)) = setting::<R>(spec) else { return };
    for weighed in [false, true] {
        let input = weighed_input(&flat, weighed);
        let input = PolicyLossInput { old_log_probs: input.log_probs, ..input };
        let plain: Loss<R> = |flat, input, aggregate, grad| {
            surrogate(&flat.batch(), input, &SurrogateConfig { aggregate, ..Default::default() }, grad)
        };
        let (_, want) = run(&flat, plain, input, weighing);
        for (name, loss) in token_losses::<R>() {
            assert_bits(name, &run(&flat, loss, input, weighing).1, &want);
        }
        // the weights of vespo are part of the ratio
        if !weighed {
            assert_bits("vespo", &run(&flat, other_losses::<R>()[2].1, input, weighing).1, &want);
        }
    }
}

#[test]
fn at_ratio_one_every_gradient_is_that_of_the_surrogate() {
    check(at_ratio_one::<f32>);
    check(at_ratio_one::<f64>);
}

fn weights_of_one<R: Number>(spec: Spec) {
    let Some((flat, weighing)) = setting::<R>(spec) else { return };
    let (ones, input) = (vec![R::one(); flat.tokens()], policy_input(&flat));
    for (name, loss) in token_losses::<R>().into_iter().chain(other_losses()) {
        let (want, want_grad) = run(&flat, loss, input, weighing);
        let (got, grad) = run(&flat, loss, PolicyLossInput { weights: Some(&ones), ..input }, weighing);
        assert_bits(name, &grad, &want_grad);
        assert_bits(name, &[got], &[want]);
    }
}

#[test]
fn weights_of_one_are_none() {
    check(weights_of_one::<f32>);
    check(weights_of_one::<f64>);
}

fn weights_scale<R: Number>(spec: Spec) {
    let Some((flat, weighing)) = setting::<R>(spec) else { return };
    let weights = flat.column(Column::Weights);
    let quarter: Vec<R> = weights.iter().map(|&w| w * R::narrow(0.25)).collect();
    let scaled = |x: f64| x * 0.25;
    for (name, loss) in token_losses::<R>().into_iter().chain(other_losses().into_iter().take(2)) {
        let (want, want_grad) = run(&flat, loss, weighed_input(&flat, true), weighing);
        let input = PolicyLossInput { weights: Some(&quarter), ..policy_input(&flat) };
        let (got, grad) = run(&flat, loss, input, weighing);
        assert_bits(name, &[got], &[scaled(want)]);
        assert_bits(name, &grad, &want_grad.iter().map(|&x| R::narrow(scaled(x.widen()))).collect::<Vec<R>>());
    }
}

#[test]
fn weights_are_factors() {
    check(weights_scale::<f32>);
    check(weights_scale::<f64>);
}

/// A weight of 0 takes a token's gradient, and a weight of one token leaves the others alone.
#[test]
fn a_weight_of_zero_drops_the_gradient() {
    check(|spec| {
        let Some((flat, weighing)) = setting::<f64>(spec) else { return };
        let weights: Vec<f64> = (0..flat.tokens()).map(|slot| (slot % 2) as f64).collect();
        for (name, loss) in token_losses::<f64>() {
            let (_, want) = run(&flat, loss, policy_input(&flat), weighing);
            let input = PolicyLossInput { weights: Some(&weights), ..policy_input(&flat) };
            let (_, grad) = run(&flat, loss, input, weighing);
            for slot in 0..flat.tokens() {
                assert_eq!(grad[slot], want[slot] * weights[slot], "{name}, slot {slot}");
            }
        }
    });
}
