//! Policy losses beyond the clip. The factors that they treat as constants depend on the log-ratio only, so they stay
//! constant while both policies move together.

use tokenwise::{loss::*, Groups};
use tokenwise_tests::generate::{Column, Flat, Random};

use super::{super::unless_too_small, check, keep_away, setting, slopes_together};
use crate::{
    case::{Case, Outcome},
    naive::{
        covariance_loss::KlCov,
        sequence_loss::{pairs, Gspo, Gvpo},
        token_loss::{DppoKl, DppoTv},
    },
};

/// The columns that move with the trained policy.
#[derive(Clone, Copy, PartialEq)]
enum Moves {
    Alone,
    WithTheOld,
}

/// Compares a case's gradient with the slope of its first number.
fn follow<C: Case>(flat: &Flat<f64>, config: C::Config, moves: Moves) {
    let Some(outcome) = unless_too_small(C::run(flat, config)) else { return };
    let along: &[Column] = if moves == Moves::Alone { &[] } else { &[Column::OldLogProbs] };
    let run = |flat: &Flat<f64>| -> Outcome<f64> { C::run(flat, config).unwrap() };
    slopes_together(flat, Column::LogProbs, along, &outcome.tokens[0], |flat| run(flat).numbers[0]);
}

fn away_from(flat: &mut Flat<f64>, places: &[f64]) {
    let old = flat.column(Column::OldLogProbs).to_vec();
    keep_away(&mut flat.columns[Column::LogProbs as usize], places, |i| old[i]);
}

/// The gradient of a loss is its slope in random batches; `places` are the log-ratios where it has none.
pub(crate) fn slope<C: Case>(places: fn(&C::Config) -> Vec<f64>) {
    slope_of::<C>(Moves::Alone, places);
}

/// The same for a loss with factors that are held constant: the policy that sampled moves along.
pub(crate) fn slope_with_the_old<C: Case>() {
    slope_of::<C>(Moves::WithTheOld, |_| vec![]);
}

fn slope_of<C: Case>(moves: Moves, places: fn(&C::Config) -> Vec<f64>) {
    check(move |spec| {
        let (mut flat, mut random) = setting(spec);
        let config = C::config(&mut random);
        away_from(&mut flat, &places(&config));
        follow::<C>(&flat, config, moves);
    });
}

/// At the threshold of being kept the slope is undefined: no token may cross it while all of them move.
fn of_kept<C: Case>(flat: &Flat<f64>, random: &mut Random) {
    let config = C::config(random);
    let dropped = |by: f64| {
        let mut moved = flat.clone();
        for column in [Column::LogProbs, Column::OldLogProbs] {
            moved.columns[column as usize].iter_mut().for_each(|x| *x += by);
        }
        C::run(&moved, config).map(|outcome| outcome.numbers[1])
    };
    if dropped(2e-5) == dropped(-2e-5) {
        follow::<C>(flat, config, Moves::WithTheOld);
    }
}

#[test]
fn of_dppo() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        of_kept::<DppoTv>(&flat, &mut random);
        of_kept::<DppoKl>(&flat, &mut random);
    });
}

/// The ratio of a sequence has a slope in the one form, and is a constant in the other: that is held to ppo_clip in
/// limits.
#[test]
fn of_gspo_by_sequence() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let mut choice = Gspo::config(&mut random);
        choice.config.form = GspoForm::Sequence;
        follow::<Gspo>(&flat, choice, Moves::Alone);
    });
}

/// Which tokens are chosen is held constant: all, or some whose covariances are not equal. Two tokens always have the
/// same.
#[test]
fn of_kl_cov() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let mut choice = KlCov::config(&mut random);
        if flat.batch().kept() == 2 {
            choice.config.ratio = 1.0;
        }
        away_from(&mut flat, &[0.0]);
        follow::<KlCov>(&flat, choice, Moves::Alone);
    });
}

/// The mean of a prompt is held constant; where its advantages add up to 0, its own slope is 0.
#[test]
fn of_gvpo() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let config = Gvpo::config(&mut random);
        let ids = pairs(flat.rows.len());
        let groups = Groups::from_ids(&ids).unwrap();
        let kept = |i: usize| flat.rows[i].clone().filter(|&slot| flat.keep[slot]).collect::<Vec<_>>();
        let sequences: Vec<Vec<usize>> = (0..flat.rows.len()).map(kept).collect();
        for group in 0..groups.count() {
            let members = || sequences.iter().zip(&ids).filter(|(kept, &id)| id as usize == group && !kept.is_empty());
            let advantages = &mut flat.columns[Column::Advantages as usize];
            let mean = |kept: &[usize]| kept.iter().map(|&slot| advantages[slot]).sum::<f64>() / kept.len() as f64;
            let excess = members().map(|(kept, _)| mean(kept)).sum::<f64>() / members().count().max(1) as f64;
            for &slot in members().flat_map(|(kept, _)| kept) {
                advantages[slot] -= excess;
            }
        }
        follow::<Gvpo>(&flat, config, Moves::Alone);
    });
}
