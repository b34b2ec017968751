//! What holds for the comparison of any two sets of conventions.

use tokenwise::{
    advantage::{discounted_returns, gae, group_relative, whiten, GaeConfig, GaeInput, GaeOutput, ReturnsInput},
    divergence::{kl_estimate, KlInput},
    loss::{ppo_clip, value_loss, AggregateMode, PolicyLossInput, ValueLossInput},
    profile::{CompareConfig, Convention, Conventions, Estimator, ProfileInput, Quantity},
    reward::{kl_in_reward, KlInRewardInput},
    rollout::{rollout_weights, RolloutInput},
    Batch, Groups, Layout, Mask, Moments, Profile,
};

use crate::traps::compare::{still, told, Told};

/// Conventions that no result of the chain depends on.
const UNREACHED: [Convention; 5] = [
    Convention::RewardClip,
    Convention::OverlongFloor,
    Convention::EntropyCoefficient,
    Convention::MinillmFrom,
    Convention::MinillmLength,
];

const X: f64 = f64::NAN;
const KEEP: [bool; 15] = [true, true, false, true, false, true, true, true, false, false, true, true, true, true, true];
const IDS: [u32; 3] = [0, 0, 1];
const REWARDS: [f64; 15] = [0.0, 0.5, 3.0, 0.0, 0.0, 0.0, -1.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0];
const VALUES: [f64; 15] = [0.5, 0.4, X, 0.3, X, -0.2, -0.4, 0.7, X, X, 1.0, 1.1, 1.2, 1.3, 1.4];
const PREDICTIONS: [f64; 15] = [0.9, 0.4, X, 0.0, X, 0.7, -0.4, 0.7, X, X, 1.3, 1.1, 1.9, 1.3, 1.4];
const LOG_PROBS: [f64; 15] = [-0.4, -22.0, X, -0.6, X, -1.2, -0.1, -0.3, X, X, -0.4, -0.8, -1.5, -0.05, -0.25];
const OLD_LOG_PROBS: [f64; 15] = [-0.9, -1.0, X, -0.7, X, -45.0, -1.6, -0.4, X, X, -0.6, -2.4, -0.2, -0.1, -0.5];
const REF_LOG_PROBS: [f64; 15] = [-0.6, -1.1, X, -0.9, X, -0.2, -3.0, -0.4, X, X, -0.5, -0.9, -1.2, 10.5, -0.4];
const ROLLOUT_LOG_PROBS: [f64; 15] = [-0.9, -1.1, X, -0.7, X, -22.0, -0.6, -0.4, X, X, -1.6, -3.4, -0.1, -0.1, -1.5];

fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(3, 5).unwrap(), Mask::new(&KEEP)).unwrap()
}

fn groups() -> Groups<'static> {
    Groups::from_ids(&IDS).unwrap()
}

/// Holes, padding, a group of one, ratios beyond every bound.
fn input() -> ProfileInput<'static, f64> {
    ProfileInput {
        values: Some(&VALUES),
        predictions: Some(&PREDICTIONS),
        old_log_probs: &OLD_LOG_PROBS,
        ref_log_probs: Some(&REF_LOG_PROBS),
        rollout_log_probs: Some(&ROLLOUT_LOG_PROBS),
        ..still(&REWARDS, &LOG_PROBS)
    }
}

/// Every batch and config here.
fn each(mut run: impl FnMut(&Batch<'_>, &Groups<'_>, ProfileInput<'_, f64>, &CompareConfig<'_>)) {
    let unscored = ROLLOUT_LOG_PROBS.map(|x| if x == -0.1 { X } else { x });
    let empty_row: Vec<bool> = KEEP.iter().enumerate().map(|(slot, &keep)| keep && slot >= 5).collect();
    let few = Batch::new(batch().layout(), Mask::new(&empty_row)).unwrap();
    let none = Batch::new(batch().layout(), Mask::new(&[false; 15])).unwrap();
    for (estimator, mode) in [
        (Estimator::GroupRelative, AggregateMode::TokenMean),
        (Estimator::LeaveOneOut, AggregateMode::SequenceMeanTokenMean),
        (Estimator::Whitened, AggregateMode::TokenMean),
    ] {
        let config = CompareConfig { gamma: 0.9, clip_high: 6.0, estimator, mode, ..Default::default() };
        let plain = ProfileInput { rollout_log_probs: None, ..input() };
        for input in [input(), plain, ProfileInput { rollout_log_probs: Some(&unscored), ..input() }] {
            run(&batch(), &groups(), input, &config);
        }
        run(&few, &groups(), plain, &config);
        run(&none, &groups(), plain, &config);
    }
    // three of four sequences scored: a share that is no binary fraction
    let four = Batch::new(Layout::padded(4, 1).unwrap(), Mask::new(&[true; 4])).unwrap();
    let pair = Groups::from_ids(&[0, 0, 1, 1]).unwrap();
    run(&four, &pair, still(&[1.0, 0.0, 2.0, -1.0], &[-1.0; 4]), &CompareConfig::default());
}

/// Each profile beside the next.
fn pairs() -> impl Iterator<Item = [Conventions; 2]> {
    let all = Profile::ALL.map(Profile::conventions);
    (0..all.len()).map(move |index| [all[index], all[(index + 1) % all.len()]])
}

#[test]
fn nothing_differs_from_itself() {
    each(|batch, groups, input, config| {
        for side in Profile::ALL.map(Profile::conventions) {
            assert_eq!(told(batch, groups, input, [side; 2], config).unwrap(), []);
        }
    });
}

/// If a single convention differs, it is the only cause of every difference.
#[test]
fn one_exchanged_convention_is_the_only_cause() {
    let mut found = Vec::new();
    each(|batch, groups, input, config| {
        for [a, b] in pairs() {
            for &convention in Convention::ALL.iter().filter(|&&convention| !a.agree(&b, convention)) {
                for difference in told(batch, groups, input, [a, a.exchanged(convention, &b)], config).unwrap() {
                    assert_eq!(difference.causes, [convention.name()], "{:?}", difference.quantity);
                    found.push(convention);
                }
            }
        }
    });
    for &convention in Convention::ALL {
        assert_eq!(found.contains(&convention), !UNREACHED.contains(&convention), "{}", convention.name());
    }
}

/// Every difference has a cause, and the comparison is symmetric.
#[test]
fn every_difference_has_a_cause() {
    each(|batch, groups, input, config| {
        for [a, b] in pairs() {
            let there = told(batch, groups, input, [a, b], config).unwrap();
            let back = told(batch, groups, input, [b, a], config).unwrap();
            assert_eq!(there.len(), back.len());
            for (there, back) in there.iter().zip(&back) {
                assert_eq!((there.quantity, there.index, there.count), (back.quantity, back.index, back.count));
                assert_eq!(there.difference.to_bits() << 1, back.difference.to_bits() << 1);
                for told in [there, back] {
                    assert!(!told.causes.is_empty(), "{told:?}");
                    assert!(told.texts.iter().all(|[first, second]| first != second), "{told:?}");
                }
            }
        }
    });
}

/// The content of dropped slots does not matter if the scores are given.
#[test]
fn dropped_slots_do_not_matter() {
    let scores = [0.5, -0.75, 2.0];
    let run = |fill: f64| {
        let of = |column: &[f64; 15]| -> Vec<f64> {
            column.iter().zip(KEEP).map(|(&x, keep)| if keep { x } else { fill }).collect()
        };
        let columns =
            [&REWARDS, &VALUES, &PREDICTIONS, &LOG_PROBS, &OLD_LOG_PROBS, &REF_LOG_PROBS, &ROLLOUT_LOG_PROBS].map(of);
        let [rewards, values, predictions, log_probs, old_log_probs, ref_log_probs, rollout_log_probs] = &columns;
        let input = ProfileInput {
            rewards,
            scores: Some(&scores),
            values: Some(values),
            predictions: Some(predictions),
            log_probs,
            old_log_probs,
            ref_log_probs: Some(ref_log_probs),
            rollout_log_probs: Some(rollout_log_probs),
        };
        let all = pairs().map(|sides| told(&batch(), &groups(), input, sides, &CompareConfig::default()).unwrap());
        format!("{:?}", all.collect::<Vec<Vec<Told>>>())
    };
    let first = run(0.0);
    for poison in [f64::NAN, f64::INFINITY, -1e300] {
        assert_eq!(run(poison), first);
    }
}

/// Some results of the chain by hand: the functions themselves with the configs of a profile.
fn by_hand(c: &Conventions) -> Vec<(Quantity, Vec<f64>)> {
    let (batch, groups, zeros) = (batch(), groups(), || vec![0.0; 15]);
    let (mut rewards, mut returns, mut advantages, mut targets) = (zeros(), zeros(), zeros(), zeros());
    let (mut whitened, mut kl, mut weights) = (zeros(), zeros(), zeros());
    let (mut grad, mut value_grad, mut relative) = (zeros(), zeros(), vec![0.0; 3]);
    let scored = KlInRewardInput { scores: &REWARDS, old_log_probs: &OLD_LOG_PROBS, ref_log_probs: &REF_LOG_PROBS };
    let reward_kl = kl_in_reward(&batch, scored, &c.kl_reward(), &mut rewards).unwrap();
    let of_rewards = ReturnsInput { rewards: &rewards, bootstrap: &[0.0; 3] };
    discounted_returns(&batch, of_rewards, &c.returns(), &mut returns).unwrap();
    let of_values = GaeInput { rewards: &rewards, values: &VALUES, bootstrap: &[0.0; 3] };
    let output = GaeOutput { advantages: &mut advantages, returns: &mut targets };
    gae(&batch, of_values, &GaeConfig { lambda: 0.9, ..c.gae() }, output).unwrap();
    whiten(&batch, &advantages, &c.whiten(), &mut whitened).unwrap();
    let scores = [0.5, -0.75, 2.0];
    group_relative(&groups, &scores, &c.group(), &mut [Moments::default(); 2], &mut relative).unwrap();
    let of_kl = KlInput { log_probs: &LOG_PROBS, ref_log_probs: &REF_LOG_PROBS };
    kl_estimate(&batch, of_kl, &c.kl_loss(), &mut kl).unwrap();
    let of_sampler = RolloutInput { old_log_probs: &OLD_LOG_PROBS, rollout_log_probs: &ROLLOUT_LOG_PROBS };
    rollout_weights(&batch, of_sampler, &c.rollout(), &mut weights).unwrap();
    let of_policy = PolicyLossInput {
        log_probs: &LOG_PROBS,
        old_log_probs: &OLD_LOG_PROBS,
        advantages: &whitened,
        weights: Some(&weights),
    };
    let ppo = ppo_clip(&batch, of_policy, &c.ppo(), &mut grad).unwrap();
    let of_critic = ValueLossInput { predictions: &PREDICTIONS, values: &VALUES, returns: &targets };
    let value = value_loss(&batch, of_critic, &c.value(), &mut value_grad).unwrap();
    vec![
        (Quantity::Rewards, rewards),
        (Quantity::RewardKl, vec![reward_kl]),
        (Quantity::Returns, returns),
        (Quantity::Gae, advantages),
        (Quantity::GaeReturns, targets),
        (Quantity::Whitened, whitened.clone()),
        (Quantity::GroupRelative, relative),
        (Quantity::Advantages, whitened),
        (Quantity::RolloutWeights, weights),
        (Quantity::Kl, kl),
        (Quantity::Ppo, vec![ppo.loss]),
        (Quantity::PpoGrad, grad),
        (Quantity::PpoClipFraction, vec![ppo.clip_fraction]),
        (Quantity::PpoClipFractionLower, vec![ppo.clip_fraction_lower]),
        (Quantity::PpoKl, vec![ppo.kl]),
        (Quantity::Value, vec![value.loss]),
        (Quantity::ValueGrad, value_grad),
        (Quantity::ValueClipFraction, vec![value.clip_fraction]),
    ]
}

/// The report equals direct calls: both numbers, how many differ, and where the difference is largest.
#[test]
fn the_numbers_are_those_of_the_functions() {
    let input = ProfileInput { scores: Some(&[0.5, -0.75, 2.0]), ..input() };
    let config = CompareConfig { lambda: Some(0.9), estimator: Estimator::Whitened, ..Default::default() };
    for sides in pairs() {
        let told = told(&batch(), &groups(), input, sides, &config).unwrap();
        for ((quantity, first), (_, second)) in by_hand(&sides[0]).into_iter().zip(by_hand(&sides[1])) {
            let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
            let differing = first.iter().zip(&second).filter(|&(&a, &b)| !same(a, b)).count();
            let found = told.iter().find(|told| told.quantity == quantity);
            assert_eq!(found.map_or(0, |found| found.count), differing, "{quantity:?}");
            let Some(found) = found else { continue };
            let at = found.index.unwrap_or(0);
            for (value, by_hand) in found.values.into_iter().zip([first[at], second[at]]) {
                assert!(same(value.unwrap(), by_hand), "{found:?}");
            }
            for (&a, &b) in first.iter().zip(&second).filter(|&(&a, &b)| !same(a, b)) {
                assert!(found.difference.is_nan() || (a - b).abs() <= found.difference, "{found:?}");
            }
        }
    }
}
