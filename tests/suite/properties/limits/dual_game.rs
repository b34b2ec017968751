//! The dual game without prices, and the limits of its weights.

use tokenwise::loss::*;
use tokenwise_tests::{
    generate::{Column, Number, Random, Spec, World},
    tolerance::{assert_bits, Basis},
};

use crate::{
    case::{assert_close, Case},
    dual_game::{DualGame, TrieComplexity},
    loss::weighed_input,
    properties::{check, unless_too_small},
};

fn no_price_is_ppo_clip<R: Number>(spec: Spec) {
    let mut random = Random::new(spec.seed ^ 0xd0a1);
    let mut flat = World::<R>::new(spec).packed();
    // zeros of both signs, and NaN
    for column in [Column::Advantages, Column::LogProbs, Column::RefLogProbs] {
        for value in &mut flat.columns[column as usize] {
            if random.below(10) == 0 {
                *value = R::narrow(random.pick(&[0.0, -0.0, f64::NAN, f64::NEG_INFINITY, 1e30]));
            }
        }
    }
    let mut played = DualGame::config(&mut random);
    played.config = DualGameConfig { gamma: 1.0, lambda: 0.0, beta: 0.0, ..played.config };
    let DualGameConfig { clip_low, clip_high, log_ratio_bound, divisor, .. } = played.config;
    let Some(got) = unless_too_small(DualGame::run(&flat, played)) else { return };
    let mut grad = vec![R::nan(); flat.tokens()];
    let want = played.weighing.with(&flat, |aggregate| {
        let config = PpoConfig { clip_low, clip_high, log_ratio_bound, divisor, aggregate, ..Default::default() };
        ppo_clip(&flat.batch(), weighed_input(&flat, played.weighed), &config, &mut grad).unwrap()
    });
    assert_bits("gradient", &got.tokens[0], &grad);
    let [loss, clip_fraction, _, _, kl] = got.numbers[..] else { panic!("{:?}", got.numbers) };
    assert_bits("numbers", &[loss, clip_fraction, kl], &[want.loss, want.clip_fraction, want.kl]);
}

#[test]
fn dual_game_without_prices_is_ppo_clip() {
    check(no_price_is_ppo_clip::<f32>);
    check(no_price_is_ppo_clip::<f64>);
}

#[test]
fn both_gradients_have_the_same_loss() {
    check(|spec| {
        let mut random = Random::new(spec.seed);
        let (flat, mut played) = (World::<f64>::new(spec).packed(), DualGame::config(&mut random));
        let mut run = |gradient| {
            played.config.gradient = gradient;
            DualGame::run(&flat, played).map(|outcome| outcome.numbers)
        };
        let Some(one) = unless_too_small(run(DualGradient::Detached)) else { return };
        let two = run(DualGradient::Through).unwrap();
        assert_bits("numbers", &one, &two);
    });
}

#[test]
fn a_gate_without_a_reference_is_none() {
    check(|spec| {
        let mut random = Random::new(spec.seed);
        let (flat, mut played) = (World::<f64>::new(spec).packed(), DualGame::config(&mut random));
        played.weight.reference = false;
        let mut run = |kind| {
            played.weight.kind = kind;
            DualGame::run(&flat, played).map(|outcome| outcome.widen())
        };
        let Some(plain) = unless_too_small(run(0)) else { return };
        let gated = run(1).unwrap();
        assert_bits("gated", &gated, &plain);
    });
}

/// Branches are compared whatever the order of the sequences.
#[test]
fn responses_in_another_order_have_the_same_trie() {
    check(|spec| {
        let config = TrieComplexity::config(&mut Random::new(spec.seed));
        let world = World::<f64>::new(spec);
        let cut = world.len() / 2;
        // the groups of the two halves are independent, so their ids may change
        let (first, second) = (world.part(0..cut), world.part(cut..world.len()));
        let run = |world: &World<f64>| TrieComplexity::run(&world.packed(), config).unwrap().tokens.concat();
        let (one, two) = (run(&first.followed_by(&second)), run(&second.followed_by(&first)));
        let turn = first.packed().tokens();
        assert_bits("turned", &[&one[turn..], &one[..turn]].concat(), &two);
    });
}

#[test]
fn permuted_sequences_have_the_same_sums() {
    check(|spec| {
        let played = DualGame::config(&mut Random::new(spec.seed));
        let world = World::<f64>::new(spec);
        let cut = world.len() / 2;
        let (first, second) = (world.part(0..cut), world.part(cut..world.len()));
        let run = |world: World<f64>| DualGame::run(&world.packed(), played).map(|outcome| outcome.numbers);
        let Some(one) = unless_too_small(run(first.followed_by(&second))) else { return };
        let two = run(second.followed_by(&first)).unwrap();
        // a prompt-mean counts prompts by the largest id, which a permutation moves
        if played.weighing.mode != 5 {
            assert_close::<DualGame>(Basis::F64, &one, &two);
        }
    });
}
