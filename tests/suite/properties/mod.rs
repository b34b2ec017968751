//! What holds for every formula, tested by one driver, and what holds for some, in the files beside.
//!
//! A failure prints the `Spec` it happened with; the same seeds are tried in every run. `QUICKCHECK_TESTS` tries more.

mod estimates;
mod gradients;
mod limits;
mod merging;
mod micro_batches;
mod profiles;
mod selection;

use std::panic;

use quickcheck::{Arbitrary, Gen, QuickCheck, TestResult, Testable};
use tokenwise_tests::{
    generate::{Flat, Number, Random, Spec, World},
    poison::poison,
    tolerance::assert_bits,
};

use crate::case::{every_case, Case, Outcome};

/// Tries a property on random specs.
pub(crate) fn check(property: fn(Spec)) {
    QuickCheck::new().rng(Gen::from_size_and_seed(100, 20_261)).quickcheck(Property(property));
}

struct Property(fn(Spec));

impl Property {
    fn fails(&self, spec: Spec) -> Option<String> {
        let panic = panic::catch_unwind(|| self.0(spec)).err()?;
        let words = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Some(format!("{spec:?}: {}", words.unwrap_or("a panic without words")))
    }
}

/// Not a plain function, because of those a failure that cannot be made smaller is reported without its arguments.
impl Testable for Property {
    fn result(&self, g: &mut Gen) -> TestResult {
        let mut spec = Spec::arbitrary(g);
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

/// Nothing of a dropped slot reaches a result, and what is written there is +0.
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

/// What is written for a sequence does not depend on the others in the batch.
fn two_sequences_are_two_batches<C: Case, R: Number>(spec: Spec) {
    let (world, _, config, mut random) = setting::<C, R>(spec);
    let cut = random.below(world.len() + 1);
    let (first, second) = (world.part(0..cut), world.part(cut..world.len()));
    let (joint, first, second) = (first.followed_by(&second).packed(), first.packed(), second.packed());
    // a mean over one of the parts may be refused where that over both is not
    let (Ok(all), Ok(one), Ok(two)) = (C::run(&joint, config), C::run(&first, config), C::run(&second, config)) else {
        return;
    };
    for (all, (one, two)) in all.tokens.iter().zip(one.tokens.iter().zip(&two.tokens)) {
        assert_bits("joint", all, &[one.as_slice(), two].concat());
    }
    for (all, (one, two)) in all.sequences.iter().zip(one.sequences.iter().zip(&two.sequences)) {
        assert_bits("joint", all, &[one.as_slice(), two].concat());
    }
}

macro_rules! hold_for_every_formula {
    ($($name:ident: $case:ty,)*) => {
        /// For the coverage test: the formulas that the properties above are tested for.
        pub(crate) const TESTED: &[tokenwise_tests::formulas::Formula] = &[$(<$case>::FORMULA,)*];

        $(mod $name {
            use super::*;

            #[test]
            fn dropped_slots_do_not_matter() {
                check(poison_changes_no_bit::<$case, f32>);
                check(poison_changes_no_bit::<$case, f64>);
            }

            #[test]
            fn padding_does_not_matter() {
                check(padded_is_packed::<$case, f32>);
                check(padded_is_packed::<$case, f64>);
            }

            #[test]
            fn other_sequences_do_not_matter() {
                // statistics of the batch are tested by micro_batches.rs and merging.rs instead
                if <$case>::SEQUENCES_ALONE {
                    check(two_sequences_are_two_batches::<$case, f32>);
                    check(two_sequences_are_two_batches::<$case, f64>);
                }
            }
        })*
    };
}
every_case!(hold_for_every_formula);
