//! NaN, infinities and other special values, and batches of unusual shapes.

mod estimators;
mod policy_losses;
mod rollout;
pub(crate) mod shapes;
mod special;

use tokenwise_tests::generate::{Column, Flat, Number, Random, Spec, World};

use crate::{
    advantage::*,
    case::{Case, Outcome},
    divergence::*,
    loss::*,
    metric::*,
    policy::*,
    reward::*,
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

fn stays_in_its_token<C: Case>(columns: &[Column]) {
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

/// `numbers` are the indices of the returned numbers that depend on the column.
fn stays_in_sums<C: Case>(column: Column, numbers: &[usize]) {
    for seed in 0..40 {
        let (_, outcome) = with_nan::<C, f32>(seed, column);
        for &place in numbers {
            let got = outcome.numbers[place];
            assert!(got.is_nan(), "{}: NaN in {column:?} became {got} in number {place}", C::NAME);
        }
    }
}

#[test]
fn nan_stays_in_its_token() {
    use Column::*;
    stays_in_its_token::<LogProbsAndEntropy>(&[Logits]);
    stays_in_its_token::<TokenLogProbs>(&[Logits]);
    stays_in_its_token::<Entropy>(&[Logits]);
    stays_in_its_token::<SumSquaredProbs>(&[Logits]);
    stays_in_its_token::<LogitsGradient>(&[Logits, Advantages, Kl]);
    stays_in_its_token::<KlEstimate>(&[LogProbs, RefLogProbs]);
    stays_in_its_token::<KlGradient>(&[LogProbs, RefLogProbs]);
    stays_in_its_token::<KlExact>(&[Logits, RefLogits]);
    stays_in_its_token::<KlExactGradient>(&[Logits, RefLogits, Advantages]);
    stays_in_its_token::<ShapeRewards>(&[Rewards, Kl]);
    stays_in_its_token::<KlInReward>(&[Rewards, OldLogProbs, RefLogProbs]);
    stays_in_its_token::<DiscountedReturns>(&[Rewards]);
    stays_in_its_token::<Gae>(&[Rewards, Values]);
    stays_in_its_token::<AttentionCredit>(&[Weights]);
    stays_in_its_token::<Whiten>(&[Advantages]);
    stays_in_its_token::<Surrogate>(&[LogProbs, OldLogProbs, Advantages]);
    stays_in_its_token::<PpoClip>(&[LogProbs, OldLogProbs, Advantages]);
    stays_in_its_token::<ValueLoss>(&[Predictions, Returns]);
}

#[test]
fn nan_stays_in_sums() {
    use Column::*;
    stays_in_sums::<KlInReward>(OldLogProbs, &[0]);
    stays_in_sums::<AggregateLoss>(Advantages, &[0]);
    stays_in_sums::<EntropyBonus>(Weights, &[0]);
    for column in [LogProbs, OldLogProbs, Advantages] {
        stays_in_sums::<Surrogate>(column, &[0]);
        stays_in_sums::<PpoClip>(column, &[0]);
    }
    stays_in_sums::<PpoClip>(LogProbs, &[3]);
    stays_in_sums::<ValueLoss>(Predictions, &[0]);
    stays_in_sums::<ValueLoss>(Returns, &[0]);
    stays_in_sums::<Mean>(Values, &[0]);
    stays_in_sums::<Variance>(Values, &[0]);
    stays_in_sums::<Correlation>(LogProbs, &[0]);
    stays_in_sums::<ExplainedVariance>(Values, &[0]);
    stays_in_sums::<KlMeans>(LogProbs, &[0, 1, 2, 3]);
    stays_in_sums::<Analysis>(OldLogProbs, &[0, 1, 2, 3]);
    stays_in_sums::<Analysis>(Advantages, &[1, 2, 3]);
    stays_in_sums::<Analysis>(Rewards, &[4]);
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
fn shares_do_not_count_nan() {
    for seed in 0..40 {
        let (_, outcome) = with_nan::<ClipFractions, f32>(seed, Column::LogProbs);
        assert!(outcome.numbers.iter().all(|share| (0.0..=1.0).contains(share)), "{:?}", outcome.numbers);
    }
}
