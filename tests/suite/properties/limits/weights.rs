//! What the policy losses have in common: the surrogate's gradient at ratio 1, and rollout weights.

use serde_json::{json, Value};
use tokenwise::loss::PolicyLossInput;
use tokenwise_catalogue::{entries, find, Array};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random, Spec, World},
    tolerance::assert_bits,
};

use crate::{
    case::{call, Outcome},
    loss::{call_loss, policy_input, weighed_input, Weighing},
    properties::{check, skip},
};

/// A loss and its settings, the aggregation left out.
#[derive(Clone)]
pub(super) struct Loss {
    pub(super) name: &'static str,
    pub(super) settings: Value,
    /// The score of every sequence, if they are all the same.
    pub(super) score: Option<f64>,
}

impl Loss {
    pub(super) const fn new(name: &'static str, settings: Value) -> Self {
        Self { name, settings, score: None }
    }

    pub(super) fn scored(self, score: f64) -> Self {
        Self { score: Some(score), ..self }
    }
}

/// Losses whose weights are not plain factors: vespo's are part of its ratio, the dual game has unweighted terms.
const OTHERS: [&str; 2] = ["vespo", "dual_game"];

/// Every policy loss of single tokens that can be aggregated in any way.
fn token_losses() -> Vec<Loss> {
    let columns = ["log_probs", "old_log_probs", "advantages", "weights", "group_tokens"];
    let losses = entries().filter(|entry| {
        columns.iter().all(|name| entry.inputs.iter().any(|column| column.name == *name))
            && entry.numbers.contains(&"loss")
            && !OTHERS.contains(&entry.name)
    });
    let losses: Vec<Loss> = losses
        .map(|entry| {
            let settings = match entry.name {
                "dro" => json!({ "beta": 0.5 }),
                // the sequence form is not a loss of single tokens
                "gspo" => json!({ "form": "token" }),
                _ => json!({}),
            };
            Loss::new(entry.name, settings)
        })
        .collect();
    assert!(losses.len() > 12);
    losses
}

/// Those of sequences, whose weights are factors.
fn sequence_losses() -> [Loss; 2] {
    ["gspo", "luspo"].map(|name| Loss::new(name, json!({})))
}

fn vespo() -> Loss {
    Loss::new("vespo", json!({}))
}

/// A batch and an aggregation it can have.
pub(super) fn setting<R: Number>(spec: Spec) -> Option<(Flat<R>, Weighing)> {
    let flat = World::<R>::new(spec).packed();
    let weighing = Weighing::new(&mut Random::new(spec.seed ^ 0x11));
    if flat.batch().kept() == 0 {
        skip();
        return None;
    }
    Some((flat, weighing))
}

pub(super) fn run<R: Number>(
    flat: &Flat<R>,
    loss: &Loss,
    input: PolicyLossInput<'_, R>,
    weighing: Weighing,
) -> (f64, Vec<R>) {
    let columns = |name: &str| match name {
        "log_probs" => Some(Array::Real(input.log_probs.to_vec())),
        "old_log_probs" => Some(Array::Real(input.old_log_probs.to_vec())),
        "advantages" => Some(Array::Real(input.advantages.to_vec())),
        "weights" => input.weights.map(|weights| Array::Real(weights.to_vec())),
        "selected" => Some(Array::Flag(vec![false; flat.tokens()])),
        "scores" => loss.score.map(|score| Array::Real(vec![R::narrow(score); flat.rows.len()])),
        _ => None,
    };
    let outcome = weighing.with(flat, |aggregate| {
        if aggregates(loss.name) {
            call_loss(loss.name, flat, &loss.settings, aggregate, columns)
        } else {
            call(loss.name, flat, &loss.settings, columns)
        }
    });
    let Outcome { mut tokens, numbers, .. } = outcome.unwrap();
    (numbers[0], tokens.remove(0))
}

fn aggregates(name: &str) -> bool {
    find(name).unwrap().inputs.iter().any(|column| column.name == "group_tokens")
}

fn at_ratio_one<R: Number>(spec: Spec) {
    let Some((flat, weighing)) = setting::<R>(spec) else { return };
    for weighed in [false, true] {
        let input = weighed_input(&flat, weighed);
        let input = PolicyLossInput { old_log_probs: input.log_probs, ..input };
        let (_, want) = run(&flat, &Loss::new("surrogate", json!({})), input, weighing);
        for loss in token_losses() {
            assert_bits(loss.name, &run(&flat, &loss, input, weighing).1, &want);
        }
        // the weights of vespo are part of the ratio
        if !weighed {
            assert_bits("vespo", &run(&flat, &vespo(), input, weighing).1, &want);
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
    for loss in token_losses().into_iter().chain(sequence_losses()).chain([vespo()]) {
        let (want, want_grad) = run(&flat, &loss, input, weighing);
        let (got, grad) = run(&flat, &loss, PolicyLossInput { weights: Some(&ones), ..input }, weighing);
        assert_bits(loss.name, &grad, &want_grad);
        assert_bits(loss.name, &[got], &[want]);
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
    for loss in token_losses().into_iter().chain(sequence_losses()) {
        let (want, want_grad) = run(&flat, &loss, weighed_input(&flat, true), weighing);
        let input = PolicyLossInput { weights: Some(&quarter), ..policy_input(&flat) };
        let (got, grad) = run(&flat, &loss, input, weighing);
        assert_bits(loss.name, &[got], &[scaled(want)]);
        assert_bits(loss.name, &grad, &want_grad.iter().map(|&x| R::narrow(scaled(x.widen()))).collect::<Vec<R>>());
    }
}

#[test]
fn weights_are_factors() {
    check(weights_scale::<f32>);
    check(weights_scale::<f64>);
}

/// A weight of 0 makes a token's gradient 0, and the weight of one token does not affect the others.
#[test]
fn a_weight_of_zero_drops_the_gradient() {
    check(|spec| {
        let Some((flat, weighing)) = setting::<f64>(spec) else { return };
        let weights: Vec<f64> = (0..flat.tokens()).map(|slot| (slot % 2) as f64).collect();
        for loss in token_losses() {
            let (_, want) = run(&flat, &loss, policy_input(&flat), weighing);
            let input = PolicyLossInput { weights: Some(&weights), ..policy_input(&flat) };
            let (_, grad) = run(&flat, &loss, input, weighing);
            for slot in 0..flat.tokens() {
                assert_eq!(grad[slot], want[slot] * weights[slot], "{}, slot {slot}", loss.name);
            }
        }
    });
}
