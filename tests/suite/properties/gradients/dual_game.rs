//! The dual game: its full gradient is the slope of its loss, the detached one that of a clip with constant advantages.

use tokenwise::loss::*;
use tokenwise_tests::{
    generate::{Column, Flat},
    tolerance::Basis,
};

use super::{super::unless_too_small, check, keep_away, setting, slopes};
use crate::{
    case::{assert_close, Case},
    dual_game::{DualGame, Played},
    loss::weighed_input,
};

fn drawn(spec: tokenwise_tests::generate::Spec, gradient: DualGradient) -> (Flat<f64>, Played) {
    let (mut flat, mut random) = setting(spec);
    let mut played = DualGame::config(&mut random);
    played.config.gradient = gradient;
    let old = flat.column(Column::OldLogProbs).to_vec();
    let config = played.config;
    let bounds = [1.0 - config.clip_low, 1.0 + config.clip_high].map(f64::ln);
    let [low, high] = bounds;
    keep_away(&mut flat.columns[Column::LogProbs as usize], &[low, high, 0.5, -0.5], |i| old[i]);
    // the gate has no slope at 0
    let new = flat.column(Column::LogProbs).to_vec();
    keep_away(&mut flat.columns[Column::RefLogProbs as usize], &[0.0], |i| new[i]);
    (flat, played)
}

#[test]
fn of_dual_game_through_everything() {
    check(|spec| {
        let (flat, played) = drawn(spec, DualGradient::Through);
        let Some(outcome) = unless_too_small(DualGame::run(&flat, played)) else { return };
        slopes(&flat, Column::LogProbs, &outcome.tokens[0], |flat| DualGame::run(flat, played).unwrap().numbers[0]);
    });
}

#[test]
fn of_dual_game_detached() {
    check(|spec| {
        let (mut flat, played) = drawn(spec, DualGradient::Detached);
        let Some(outcome) = unless_too_small(DualGame::run(&flat, played)) else { return };
        // with one sum over everything, a ratio of 1 and no clip, the loss is minus the modified advantage
        let still = DualGameConfig { clip_low: 9.0, clip_high: 9.0, ..played.config };
        let input = played.input(&flat);
        let policy = PolicyLossInput { old_log_probs: input.policy.log_probs, weights: None, ..input.policy };
        let aggregate = Aggregate { mode: AggregateMode::TokenSum, ..Default::default() };
        let mut minus = vec![0.0; flat.tokens()];
        let input = DualGameInput { policy, ..input };
        dual_game(&flat.batch(), input, &DualGameConfig { aggregate, ..still }, &mut minus).unwrap();
        flat.columns[Column::Advantages as usize] = minus.iter().map(|x| -x).collect();
        let DualGameConfig { clip_low, clip_high, log_ratio_bound, divisor, .. } = played.config;
        let mut grad = vec![0.0; flat.tokens()];
        let result = played.weighing.with(&flat, |aggregate| {
            let config = PpoConfig { clip_low, clip_high, log_ratio_bound, divisor, aggregate, ..Default::default() };
            ppo_clip(&flat.batch(), weighed_input(&flat, played.weighed), &config, &mut grad).unwrap()
        });
        assert_close::<DualGame>(Basis::F64, &outcome.tokens[0], &grad);
        assert_close::<DualGame>(Basis::F64, &outcome.numbers[..2], &[result.loss, result.clip_fraction]);
    });
}
