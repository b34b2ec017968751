//! What holds for every formula, tested by one driver, and what holds for some, in the files beside.
//!
//! A failure prints the `Spec` it happened with; the same seeds are tried in every run.
//! `QUICKCHECK_TESTS` tries more, `TOKENWISE_SEED` others.

mod estimates;
pub(crate) mod gradients;
pub(crate) mod limits;
mod merging;
mod micro_batches;
mod profiles;
mod selection;

use std::{
    cell::Cell,
    env,
    panic::{self, RefUnwindSafe},
};

use quickcheck::{Arbitrary, Gen, QuickCheck, TestResult, Testable};
use tokenwise::{Error, Result};
use tokenwise_tests::{
    generate::{Flat, Number, Random, Spec, World},
    poison::poison,
    tolerance::assert_bits,
};

use crate::case::{Case, Outcome};

thread_local! {
    /// Number of batches a property was tried on, and how many of them it does not apply to.
    static TRIED: Cell<[usize; 2]> = const { Cell::new([0; 2]) };
}

/// Tries a property on random specs. It must apply to at least one batch in five: many batches have no sequence or
/// just one, so that one of their parts is empty.
pub(crate) fn check(property: impl Fn(Spec) + RefUnwindSafe + 'static) {
    TRIED.set([0; 2]);
    let seed = env::var("TOKENWISE_SEED").map_or(20_261, |seed| seed.parse().unwrap());
    QuickCheck::new().rng(Gen::from_size_and_seed(100, seed)).quickcheck(Property(property));
    let [tried, skipped] = TRIED.get();
    assert!(5 * skipped < 4 * tried, "{skipped} of {tried} batches were skipped");
}

/// Counts a batch that a property does not apply to.
pub(crate) fn skip() {
    let [tried, skipped] = TRIED.get();
    TRIED.set([tried, skipped + 1]);
}

/// The result of a call. A batch may be too small, which is counted; any other error is a failure.
#[track_caller]
pub(crate) fn unless_too_small<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(Error::EmptyMask | Error::TooFew { .. }) => {
            skip();
            None
        }
        Err(error) => panic!("{error}"),
    }
}

struct Property<F>(F);

impl<F: Fn(Spec) + RefUnwindSafe> Property<F> {
    fn fails(&self, spec: Spec) -> Option<String> {
        let panic = panic::catch_unwind(|| self.0(spec)).err()?;
        let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Some(format!("{spec:?}: {}", words.unwrap_or("a panic without words")))
    }
}

/// Not a plain function: quickcheck reports a failure of those that cannot be shrunk without its arguments.
impl<F: Fn(Spec) + RefUnwindSafe + 'static> Testable for Property<F> {
    fn result(&self, g: &mut Gen) -> TestResult {
        let mut spec = Spec::arbitrary(g);
        let [tried, skipped] = TRIED.get();
        TRIED.set([tried + 1, skipped]);
        let Some(mut words) = self.fails(spec) else { return TestResult::passed() };
        while let Some((smaller, fewer_words)) = spec.shrink().find_map(|spec| Some((spec, self.fails(spec)?))) {
            (spec, words) = (smaller, fewer_words);
        }
        TestResult::error(words)
    }
}

/// A padded or a packed batch, and a config.
fn setting<C: Case, R: Number>(spec: Spec) -> (World<R>, Flat<R>, C::Config, Random) {
    let mut random = Random::new(spec.seed ^ 0xc0ffee);
    let config = C::config(&mut random);
    let world = World::<R>::new(spec);
    let flat = if random.below(2) == 0 { world.packed() } else { world.padded(random.clone().below(20), &mut random) };
    (world, flat, config, random)
}

fn assert_same<R: Number>(what: &str, got: &(Flat<R>, Outcome<R>), want: &(Flat<R>, Outcome<R>), dropped_too: bool) {
    assert_bits(what, &got.1.of_slots(&got.0, dropped_too), &want.1.of_slots(&want.0, dropped_too));
    assert_bits(what, &got.1.sequences.concat(), &want.1.sequences.concat());
    assert_bits(what, &got.1.numbers, &want.1.numbers);
}

/// Dropped slots do not affect any result, and get +0.
pub(crate) fn poison_changes_no_bit<C: Case, R: Number>(spec: Spec) {
    let (_, clean, config, mut random) = setting::<C, R>(spec);
    let mut poisoned = clean.clone();
    poison(&mut poisoned, &mut random);
    match (C::run(&clean, config), C::run(&poisoned, config)) {
        (Ok(want), Ok(got)) => {
            if C::DROPPED_GET_ZERO {
                let dropped = got.of_dropped(&poisoned);
                assert_bits("dropped slots", &dropped, &vec![R::zero(); dropped.len()]);
            }
            assert_same("poisoned", &(poisoned, got), &(clean, want), C::DROPPED_GET_ZERO);
        }
        (want, got) => assert_eq!(got.err(), want.err(), "poisoned"),
    }
}

/// Padding on the right changes no bit.
pub(crate) fn padded_is_packed<C: Case, R: Number>(spec: Spec) {
    let (world, _, config, mut random) = setting::<C, R>(spec);
    let (packed, padded) = (world.packed(), world.padded(random.clone().below(20), &mut random));
    match (C::run(&packed, config), C::run(&padded, config)) {
        (Ok(want), Ok(got)) => assert_same("padded", &(padded, got), &(packed, want), true),
        (want, got) => assert_eq!(got.err(), want.err(), "padded"),
    }
}

/// A batch cut in two: the results of the whole and of its parts, unless one of the three is rejected.
fn whole_and_parts<C: Case, R: Number>(spec: Spec) -> Option<[Outcome<R>; 3]> {
    let (world, _, config, mut random) = setting::<C, R>(spec);
    let cut = random.below(world.len() + 1);
    let (first, second) = (world.part(0..cut), world.part(cut..world.len()));
    let joint = first.followed_by(&second).packed();
    // a mean over one part may be rejected although that over both is not
    let [whole, first, second] = [joint, first.packed(), second.packed()].map(|flat| C::run(&flat, config).ok());
    Some([whole?, first?, second?])
}

/// The outputs of a sequence do not depend on the other sequences of the batch.
fn two_sequences_are_two_batches<C: Case, R: Number>(spec: Spec) {
    let Some([all, one, two]) = whole_and_parts::<C, R>(spec) else { return skip() };
    for (all, (one, two)) in all.tokens.iter().zip(one.tokens.iter().zip(&two.tokens)) {
        assert_bits("joint", all, &[one.as_slice(), two].concat());
    }
    for (all, (one, two)) in all.sequences.iter().zip(one.sequences.iter().zip(&two.sequences)) {
        assert_bits("joint", all, &[one.as_slice(), two].concat());
    }
}

/// A result is a statistic of the batch: some batch gives other bits than its parts do. How such results are put
/// together is tested by micro_batches.rs and merging.rs.
fn some_batch_is_not_its_parts<C: Case, R: Number>() {
    let differs = |seed| {
        let Some([all, one, two]) = whole_and_parts::<C, R>(Spec { seed, sequences: 6, longest: 9 }) else {
            return false;
        };
        let bits = |slices: &[Vec<R>]| slices.concat().iter().map(|x| x.bits()).collect::<Vec<u64>>();
        let joined = |one: &[Vec<R>], two: &[Vec<R>]| -> Vec<Vec<R>> {
            one.iter().zip(two).map(|(one, two)| [one.as_slice(), two].concat()).collect()
        };
        let numbers = all.numbers.iter().map(|x| x.to_bits()).ne(one.numbers.iter().map(|x| x.to_bits()));
        bits(&all.tokens) != bits(&joined(&one.tokens, &two.tokens))
            || bits(&all.sequences) != bits(&joined(&one.sequences, &two.sequences))
            || all.tokens.is_empty() && all.sequences.is_empty() && numbers
    };
    assert!((0..300).any(differs), "the other sequences never mattered");
}

pub(crate) fn dropped_slots_do_not_matter<C: Case>() {
    check(poison_changes_no_bit::<C, f32>);
    check(poison_changes_no_bit::<C, f64>);
}

pub(crate) fn padding_does_not_matter<C: Case>() {
    check(padded_is_packed::<C, f32>);
    check(padded_is_packed::<C, f64>);
}

pub(crate) fn other_sequences_matter_as_they_should<C: Case>() {
    if C::SEQUENCES_ALONE {
        check(two_sequences_are_two_batches::<C, f32>);
        check(two_sequences_are_two_batches::<C, f64>);
    } else {
        some_batch_is_not_its_parts::<C, f32>();
        some_batch_is_not_its_parts::<C, f64>();
    }
}
