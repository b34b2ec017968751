//! NaN, infinities and other special values, and batches of unusual shapes.

mod estimators;
mod policy_losses;
mod rollout;
pub(crate) mod shapes;
mod special;

pub(crate) use policy_losses::{nan_counts_by_score, nan_stays_in_weights, shares_do_not_count_nan};

use tokenwise_tests::generate::{Column, Flat, Number, Random, Spec, World};

use crate::{
    advantage::*,
    case::{Case, Outcome},
    loss::*,
    metric::*,
};

/// A batch of two sequences, and a kept slot of the first.
fn world<R: Number>(seed: u64) -> (Flat<R>, usize) {
    (0..)
        .map(|more| World::<R>::new(Spec { seed: seed + 7919 * more, sequences: 2, longest: 21 }).packed())
        .find_map(|flat| {
            let kept = |row: usize| flat.rows[row].clone().find(|&slot| flat.keep[slot]);
            let (slot, _) = (kept(0)?, kept(1)?);
            (flat.batch().kept() > 3).then_some((flat, slot))
        })
        .unwrap()
}

/// Runs a case with NaN in one column of one kept slot; returns the outputs of that slot, and all outputs.
fn with_nan<C: Case, R: Number>(seed: u64, column: Column) -> (Vec<R>, Outcome<R>) {
    let (mut flat, slot) = world::<R>(seed);
    let config = C::config(&mut Random::new(seed));
    let clean = C::run(&flat, config).unwrap();
    let width = flat.column(column).len() / flat.tokens();
    flat.columns[column as usize][slot * width] = R::nan();
    let outcome = C::run(&flat, config).unwrap();
    if C::SEQUENCES_ALONE {
        // the other sequence is unaffected
        for (got, want) in outcome.tokens.iter().zip(&clean.tokens) {
            let from = flat.rows[1].start * got.len() / flat.tokens();
            tokenwise_tests::tolerance::assert_bits("the other sequence", &got[from..], &want[from..]);
        }
    }
    let mut of_slot = Vec::new();
    for slice in &outcome.tokens {
        let width = slice.len() / flat.tokens();
        of_slot.extend(&slice[slot * width..(slot + 1) * width]);
    }
    (of_slot, outcome)
}

/// NaN in a column of a kept token becomes NaN in its outputs.
pub(crate) fn nan_stays_in_its_token<C: Case>(columns: &[Column]) {
    fn check<C: Case, R: Number>(seed: u64, column: Column) {
        let (of_slot, _) = with_nan::<C, R>(seed, column);
        let config = C::config(&mut Random::new(seed));
        let what = format!("{} {}: NaN in {column:?} with {config:?} became {of_slot:?}", C::NAME, R::NAME);
        assert!(!of_slot.is_empty() && of_slot.iter().all(|x| x.is_nan()), "{what}");
    }
    for seed in 0..40 {
        for &column in columns {
            check::<C, f32>(seed, column);
            check::<C, f64>(seed, column);
        }
    }
}

/// NaN in a column of a kept token becomes NaN in the returned numbers that depend on it, which are given by their
/// indices.
pub(crate) fn nan_stays_in_sums<C: Case>(columns: &[(Column, &[usize])]) {
    for seed in 0..40 {
        for &(column, numbers) in columns {
            let (_, outcome) = with_nan::<C, f32>(seed, column);
            for &place in numbers {
                let got = outcome.numbers[place];
                assert!(got.is_nan(), "{}: NaN in {column:?} became {got} in number {place}", C::NAME);
            }
        }
    }
}

/// Both, for the first number: the loss.
pub(crate) fn nan_stays<C: Case>(columns: &[Column]) {
    nan_stays_in_its_token::<C>(columns);
    for &column in columns {
        nan_stays_in_sums::<C>(&[(column, &[0])]);
    }
}

/// The old values matter only where predictions are clipped to them.
#[test]
fn nan_in_old_values_stays_where_they_are_used() {
    for seed in 0..40 {
        let (_, config) = ValueLoss::config(&mut Random::new(seed));
        let (of_slot, outcome) = with_nan::<ValueLoss, f32>(seed, Column::Values);
        assert_eq!(of_slot[0].is_nan(), config.clip.is_some(), "gradient with {config:?}");
        assert_eq!(outcome.numbers[0].is_nan(), config.clip.is_some(), "loss with {config:?}");
    }
}

#[test]
fn nan_stays_in_its_sequence() {
    let (mut flat, slot) = world::<f32>(3);
    flat.columns[Column::Rewards as usize][slot] = f32::NAN;
    let sums = SequenceSums::run(&flat, ()).unwrap().sequences.concat();
    assert!(sums[0].is_nan() && !sums[1].is_nan(), "{sums:?}");
    // and a score in its group
    flat.outcomes[0] = f32::NAN;
    let config = GroupRelative::config(&mut Random::new(0));
    flat.group_ids = vec![0, 1];
    let apart = GroupRelative::run(&flat, config).unwrap().sequences.concat();
    assert!(!apart[1].is_nan() || config.singleton == tokenwise::advantage::Singleton::Undefined, "{apart:?}");
    flat.group_ids = vec![0, 0];
    for together in [
        GroupRelative::run(&flat, config),
        LeaveOneOut::run(&flat, tokenwise::advantage::LeaveOneOutConfig { singleton: config.singleton }),
    ] {
        assert!(together.unwrap().sequences.concat().iter().all(|x| x.is_nan()));
    }
}

/// A NaN is neither inside nor outside a clip: the numerator of a share does not count it, the denominator does.
#[test]
fn shares_of_a_clip_do_not_count_nan() {
    for seed in 0..40 {
        let (_, outcome) = with_nan::<ClipFractions, f32>(seed, Column::LogProbs);
        assert!(outcome.numbers.iter().all(|share| (0.0..=1.0).contains(share)), "{:?}", outcome.numbers);
    }
}
