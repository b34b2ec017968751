//! The same traps seen from above: a batch that falls into one is found to differ, and the right convention is blamed.

use tokenwise::{
    advantage::WeightedSum,
    loss::AggregateMode,
    math::ln,
    profile::{
        compare, compare_scratch_len, CompareConfig, CompareScratch, Conventions, Estimator, ProfileInput, Quantity,
    },
    Batch, Error, Groups, Moments, Profile, Result,
};

use super::{batch, near};

/// A difference with nothing borrowed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) quantity: Quantity,
    pub(crate) index: Option<usize>,
    pub(crate) values: [Result<f64>; 2],
    pub(crate) difference: f64,
    pub(crate) count: usize,
    pub(crate) causes: Vec<&'static str>,
    pub(crate) texts: Vec<[String; 2]>,
}

pub(crate) fn told(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: ProfileInput<'_, f64>,
    sides: [Conventions; 2],
    config: &CompareConfig<'_>,
) -> Result<Vec<Told>> {
    let sizes = compare_scratch_len(batch, groups)?;
    let scratch = CompareScratch {
        tokens: &mut vec![f64::NAN; sizes.tokens],
        sequences: &mut vec![f64::NAN; sizes.sequences],
        moments: &mut vec![Moments::default(); sizes.groups],
        sums: &mut vec![WeightedSum::default(); sizes.groups],
        keep: &mut vec![false; sizes.keep],
    };
    let mut told = Vec::new();
    let count = compare(batch, groups, input, sides, config, scratch, |difference| {
        told.push(Told {
            quantity: difference.quantity,
            index: difference.index,
            values: difference.values,
            difference: difference.difference,
            count: difference.count,
            causes: difference.causes().map(|cause| cause.convention.name()).collect(),
            texts: difference.causes().map(|cause| cause.values.map(|value| format!("{value:?}"))).collect(),
        });
    })?;
    assert_eq!(count, told.len());
    Ok(told)
}

/// An input with log-probabilities that do not move, and nothing optional.
pub(crate) fn still<'a>(rewards: &'a [f64], log_probs: &'a [f64]) -> ProfileInput<'a, f64> {
    ProfileInput {
        rewards,
        scores: None,
        values: None,
        predictions: None,
        log_probs,
        old_log_probs: log_probs,
        ref_log_probs: None,
        rollout_log_probs: None,
    }
}

fn sides(a: Profile, b: Profile) -> [Conventions; 2] {
    [a.conventions(), b.conventions()]
}

/// What is told of one result.
fn of(told: &[Told], quantity: Quantity) -> Option<&Told> {
    told.iter().find(|told| told.quantity == quantity)
}

fn causes(told: &[Told], quantity: Quantity) -> &[&'static str] {
    of(told, quantity).map_or(&[], |told| &told.causes)
}

/// 1. and 18. A hole in the mask.
#[test]
fn a_hole_is_stepped_over_or_not() {
    let (rewards, keep) = ([0.0, 7.0, 1.0], [true, false, true]);
    let (values, zeros) = ([0.5, f64::NAN, 0.25], [-1.0, f64::NAN, -1.0]);
    let groups = Groups::contiguous(&[1]).unwrap();
    let input = ProfileInput { values: Some(&values), scores: Some(&[1.0]), ..still(&rewards, &zeros) };
    let config = CompareConfig { gamma: 0.5, lambda: Some(1.0), ..Default::default() };
    let told = told(&batch(1, &keep), &groups, input, sides(Profile::Paper, Profile::Trl1_16), &config).unwrap();
    let returns = of(&told, Quantity::Returns).unwrap();
    assert_eq!((returns.index, returns.values, returns.difference), (Some(0), [Ok(0.5), Ok(0.25)], 0.25));
    assert_eq!((returns.count, &returns.causes[..]), (1, &["across"][..]));
    assert_eq!(returns.texts, [["StepOver".to_string(), "ZeroStep".to_string()]]);
    for quantity in [Quantity::Gae, Quantity::GaeReturns] {
        assert_eq!(causes(&told, quantity), ["across"], "{quantity:?}");
    }
    // two advantages become −x and x, whatever they were
    assert!(of(&told, Quantity::Whitened).map_or(true, |whitened| whitened.difference < 1e-6));
}

/// 2. ddof, the place of ε, and what a single token gets.
#[test]
fn whitening_is_blamed_on_its_parts() {
    let (log_probs, groups) = ([-1.0; 2], Groups::contiguous(&[1]).unwrap());
    let both = sides(Profile::Paper, Profile::OpenRlhf0_11);
    let config = CompareConfig::default();
    let two = told(&batch(1, &[true; 2]), &groups, still(&[1.0, 1.0], &log_probs), both, &config).unwrap();
    let whitened = of(&two, Quantity::Whitened).unwrap();
    assert_eq!(whitened.causes, ["whiten.spread", "whiten.place"]);
    near(whitened.difference, 1.0 - std::f64::consts::FRAC_1_SQRT_2);
    // one of them cannot whiten a single token: no error, but a difference
    let one = told(&batch(1, &[true, false]), &groups, still(&[3.0, 0.0], &log_probs), both, &config).unwrap();
    let whitened = of(&one, Quantity::Whitened).unwrap();
    let error = Error::TooFew { what: "variance", needed: 2, got: 1 };
    assert_eq!((whitened.values, &whitened.causes[..]), ([Err(error), Ok(0.0)], &["whiten.spread"][..]));
    // and a loss that is given nothing gives nothing
    let config = CompareConfig { estimator: Estimator::Whitened, ..config };
    let one = told(&batch(1, &[true, false]), &groups, still(&[3.0, 0.0], &log_probs), both, &config).unwrap();
    assert_eq!(of(&one, Quantity::Ppo).unwrap().values, [Err(error), Ok(0.0)]);
}

/// 3. and 4. The ε beside a group's deviation, and a group of one.
#[test]
fn groups_are_blamed_on_epsilon_or_on_the_singleton() {
    let (keep, log_probs) = ([true; 3], [-1.0; 3]);
    let groups = Groups::contiguous(&[2, 1]).unwrap();
    let input = still(&[0.0, 1.0, 2.0], &log_probs);
    let run = |a, b| told(&batch(3, &keep), &groups, input, sides(a, b), &CompareConfig::default()).unwrap();
    let told = run(Profile::Paper, Profile::Trl1_16);
    assert_eq!(causes(&told, Quantity::GroupRelative), ["group.epsilon"]);
    assert_eq!(of(&told, Quantity::GroupRelative).unwrap().count, 2);
    let told = run(Profile::Verl0_9_1, Profile::Trl1_16);
    assert_eq!(causes(&told, Quantity::GroupRelative), ["group.epsilon", "singleton"]);
    let alone = of(&told, Quantity::LeaveOneOut).unwrap();
    assert_eq!((alone.index, alone.values, alone.count), (Some(2), [Ok(2.0), Ok(0.0)], 1));
    assert_eq!(alone.causes, ["singleton"]);
    assert_eq!(causes(&told, Quantity::LengthWeighted), ["baseline.singleton"]);
    // NaN is farther than any number
    let told = run(Profile::Trl1_16, Profile::OpenRlhf0_11);
    let relative = of(&told, Quantity::GroupRelative).unwrap();
    assert_eq!((relative.index, relative.count), (Some(2), 3));
    assert!(relative.difference.is_nan());
    assert_eq!(relative.causes, ["group.epsilon", "singleton"]);
    assert_eq!(causes(&told, Quantity::LeaveOneOut), ["singleton"]);
}

/// 5. The second clip: on for one, and for both signs elsewhere.
#[test]
fn the_second_clip_is_blamed_on_its_bound_or_on_its_signs() {
    let (log_probs, keep) = ([ln(4.0), 0.0], [true; 2]);
    let groups = Groups::contiguous(&[2]).unwrap();
    let run = |rewards: &[f64], a, b, config: &CompareConfig<'_>| {
        let input = ProfileInput { old_log_probs: &[0.0; 2], ..still(rewards, &log_probs) };
        told(&batch(2, &keep), &groups, input, [a, b], config).unwrap()
    };
    let verl = Profile::Verl0_9_1.conventions();
    let off = Conventions { dual_clip_bound: None, ..verl };
    let found = run(&[0.0, 1.0], verl, off, &CompareConfig::default());
    for quantity in [Quantity::Ppo, Quantity::PpoGrad, Quantity::PpoClipFractionLower] {
        assert_eq!(causes(&found, quantity), ["dual_clip.bound"], "{quantity:?}");
    }
    assert_eq!(found.len(), 3);
    // a positive advantage, a wide clip: TRL's second bound holds it, verl's does not
    let config = CompareConfig { clip_high: 9.0, dual_clip: Some(3.0), ..Default::default() };
    let trl = Conventions { dual_clip_signs: Profile::Trl1_16.conventions().dual_clip_signs, ..verl };
    let found = run(&[1.0, 0.0], verl, trl, &config);
    assert_eq!(causes(&found, Quantity::Ppo), ["dual_clip.signs"]);
    let whole = run(&[1.0, 0.0], verl, Profile::Trl1_16.conventions(), &config);
    assert!(causes(&whole, Quantity::Ppo).contains(&"dual_clip.signs"));
    // what both sides are given is no cause
    assert!(whole.iter().all(|told| !told.causes.contains(&"dual_clip.bound")));
}

/// 7. and 9. GSPO's form and mode, CISPO's bounds.
#[test]
fn sequence_ratios_and_bounded_ratios() {
    let log_probs = [-0.5, -0.25, -0.1];
    let input = ProfileInput { old_log_probs: &[-0.6, -0.5, -0.4], ..still(&[0.0, 0.0, 1.0], &log_probs) };
    let groups = Groups::contiguous(&[2]).unwrap();
    let keep = [true, true, true];
    let layout = tokenwise::Layout::packed(&[0, 2, 3]).unwrap();
    let batch = Batch::new(layout, tokenwise::Mask::new(&keep)).unwrap();
    let found =
        told(&batch, &groups, input, sides(Profile::Trl1_16, Profile::Verl0_9_1), &CompareConfig::default()).unwrap();
    // advantages are constant within a sequence here, so that the form alone makes no difference
    assert!(causes(&found, Quantity::Gspo).contains(&"gspo.mode"));
    assert!(!causes(&found, Quantity::Gspo).contains(&"gspo.form"));
    let grad = of(&found, Quantity::CispoGrad).unwrap();
    assert!(grad.causes.contains(&"cispo.bounds"), "{grad:?}");
}

/// 10. Bounds of the KL, in value and gradient.
#[test]
fn kl_bounds_are_found() {
    let (reference, log_probs) = ([2.7, 0.0], [0.0, 0.0]);
    let input = ProfileInput { ref_log_probs: Some(&reference), ..still(&[0.0, 1.0], &log_probs) };
    let groups = Groups::contiguous(&[1]).unwrap();
    let config = CompareConfig { beta: Some(0.1), ..Default::default() };
    let both = sides(Profile::Verl0_9_1, Profile::Trl1_16);
    let found = told(&batch(1, &[true; 2]), &groups, input, both, &config).unwrap();
    let kl = of(&found, Quantity::Kl).unwrap();
    assert_eq!((kl.index, kl.values[0], &kl.causes[..]), (Some(0), Ok(10.0), &["kl.bounds"][..]));
    near(kl.values[1].unwrap(), 11.179732);
    assert_eq!(causes(&found, Quantity::KlLoss), ["kl.bounds"]);
    assert_eq!(of(&found, Quantity::KlLossGrad).unwrap().values[0], Ok(0.0));
    // the estimate in the reward is another one, which neither of the two bounds
    assert_eq!(of(&found, Quantity::Rewards), None);
    let both = sides(Profile::Verl0_9_1, Profile::OpenRlhf0_11);
    let found = told(&batch(1, &[true; 2]), &groups, input, both, &CompareConfig::default()).unwrap();
    assert_eq!(causes(&found, Quantity::Rewards), ["kl_reward.beta"]);
}

/// Sequences without kept tokens, and batches without any.
#[test]
fn empty_rows_and_empty_batches() {
    let (log_probs, groups) = ([-1.0; 4], Groups::contiguous(&[2]).unwrap());
    let input = ProfileInput { scores: Some(&[1.0, 0.0]), ..still(&[0.0; 4], &log_probs) };
    let verl = Profile::Verl0_9_1.conventions();
    let counted = Conventions { empty_rows: Profile::Trl1_16.conventions().empty_rows, ..verl };
    let config = CompareConfig { mode: AggregateMode::SequenceMeanTokenMean, ..Default::default() };
    let keep = [true, true, false, false];
    let found = told(&batch(2, &keep), &groups, input, [verl, counted], &config).unwrap();
    assert_eq!(causes(&found, Quantity::Ppo), ["aggregate.empty_rows"]);
    let [Ok(alone), Ok(halved)] = of(&found, Quantity::Ppo).unwrap().values else { panic!("a number each") };
    near(halved, alone / 2.0);
    let both = sides(Profile::Verl0_9_1, Profile::Trl1_16);
    let found = told(&batch(2, &[false; 4]), &groups, input, both, &config).unwrap();
    let loss = of(&found, Quantity::Ppo).unwrap();
    assert!(matches!(loss.values, [Ok(nan), Ok(zero)] if nan.is_nan() && zero == 0.0), "{loss:?}");
    assert_eq!(loss.causes, ["empty_loss"]);
}

/// 19. A reward on a dropped slot counts for a score, or does not.
#[test]
fn scores_of_dropped_slots() {
    let (log_probs, groups) = ([-1.0; 4], Groups::contiguous(&[2]).unwrap());
    let input = still(&[0.0, 1.0, 0.0, 0.0], &log_probs);
    let keep = [true, false, true, true];
    let both = sides(Profile::Paper, Profile::Verl0_9_1);
    let found = told(&batch(2, &keep), &groups, input, both, &CompareConfig::default()).unwrap();
    let scores = of(&found, Quantity::Scores).unwrap();
    assert_eq!((scores.index, scores.values, &scores.causes[..]), (Some(0), [Ok(0.0), Ok(1.0)], &["score_slots"][..]));
    assert!(causes(&found, Quantity::Ppo).contains(&"score_slots"));
}
