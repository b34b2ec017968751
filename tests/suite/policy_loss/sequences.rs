//! Losses with one ratio a sequence and a shape of their own.

use tokenwise::{loss::*, Groups, Moments, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Flat, Number, Random},
    naive::sequence_loss as textbook,
};

use super::{numbers, Choice};
use crate::{
    case::{tokens, unwritten, Case, Outcome},
    loss::weighed_input,
    reward::DIVISORS,
};

pub(crate) struct Luspo;
impl Case for Luspo {
    const FORMULA: Formula = Formula::Luspo;
    const SEQUENCES_ALONE: bool = false;
    type Config = (LuspoConfig, bool);
    fn config(random: &mut Random) -> Self::Config {
        let config = LuspoConfig { clip_low: random.pick(&[0.03125, 0.25]), clip_high: random.pick(&[0.0625, 0.25]) };
        (config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (config, weighed): Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let result = luspo(&flat.batch(), weighed_input(flat, weighed), &config, &mut grad)?;
        Ok(Outcome::tokens([grad]).and(numbers(result)))
    }
    fn naive(flat: &Flat<f64>, (config, weighed): Self::Config) -> Outcome<f64> {
        let (result, grad) = textbook::luspo(tokens(flat), weighed_input(flat, weighed), &config);
        Outcome::tokens([grad]).and(numbers(result))
    }
}

pub(crate) struct Gmpo;
impl Case for Gmpo {
    const FORMULA: Formula = Formula::Gmpo;
    const SEQUENCES_ALONE: bool = false;
    type Config = (GmpoConfig, bool);
    fn config(random: &mut Random) -> Self::Config {
        let counts = GlobalCounts { sequences: 12, ranks: 4, ..Default::default() };
        let config = GmpoConfig {
            clip_low: random.pick(&[0.375, 0.125]),
            clip_high: random.pick(&[0.375, 0.25]),
            counts: random.pick(&[Counts::Local, Counts::Global(counts)]),
            divisor: random.pick(&DIVISORS),
        };
        (config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (config, weighed): Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let result = gmpo(&flat.batch(), weighed_input(flat, weighed), &config, &mut grad)?;
        Ok(Outcome::tokens([grad]).and(numbers(result)))
    }
    fn naive(flat: &Flat<f64>, (config, weighed): Self::Config) -> Outcome<f64> {
        let (result, grad) = textbook::gmpo(tokens(flat), weighed_input(flat, weighed), &config);
        Outcome::tokens([grad]).and(numbers(result))
    }
}

pub(crate) struct Vespo;
impl Case for Vespo {
    const FORMULA: Formula = Formula::Vespo;
    const SEQUENCES_ALONE: bool = false;
    type Config = Choice<VespoConfig<'static>>;
    fn config(random: &mut Random) -> Self::Config {
        let config = VespoConfig {
            k_positive: random.pick(&[2.0, 1.0]),
            lambda_positive: random.pick(&[3.0, 0.5]),
            k_negative: random.pick(&[3.0, 1.5]),
            lambda_negative: random.pick(&[2.0, 1.0]),
            ..Default::default()
        };
        Choice::new(random, config)
    }
    fn run<R: Number>(flat: &Flat<R>, Choice { config, weighing, weighed }: Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let result = weighing.with(flat, |aggregate| {
            vespo(&flat.batch(), weighed_input(flat, weighed), &VespoConfig { aggregate, ..config }, &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and([result.loss, result.phi_mean]))
    }
    fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
        let (result, grad) = weighing.with(flat, |aggregate| {
            textbook::vespo(tokens(flat), weighed_input(flat, weighed), &VespoConfig { aggregate, ..config })
        });
        Outcome::tokens([grad]).and([result.loss, result.phi_mean])
    }
}

/// Two or three samples a prompt, one after the other; a single one is a prompt of its own.
pub(crate) fn pairs(sequences: usize) -> Vec<u32> {
    (0..sequences).map(|i| (i / 2).min((sequences / 2).saturating_sub(1)) as u32).collect()
}

pub(crate) struct Gvpo;
impl Case for Gvpo {
    const FORMULA: Formula = Formula::Gvpo;
    const SEQUENCES_ALONE: bool = false;
    type Config = (GvpoConfig, bool);
    fn config(random: &mut Random) -> Self::Config {
        (GvpoConfig { beta: random.pick(&[0.125, 0.5, 1.0]) }, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (config, weighed): Self::Config) -> Result<Outcome<R>> {
        let ids = pairs(flat.rows.len());
        let groups = Groups::from_ids(&ids)?;
        let (mut scratch, mut grad) = (vec![Moments::default(); groups.count()], unwritten(flat.tokens()));
        let loss = gvpo(&flat.batch(), &groups, weighed_input(flat, weighed), &config, &mut scratch, &mut grad)?;
        Ok(Outcome::tokens([grad]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, (config, weighed): Self::Config) -> Outcome<f64> {
        let ids = pairs(flat.rows.len());
        let groups = Groups::from_ids(&ids).unwrap();
        let (loss, grad) = textbook::gvpo(tokens(flat), &groups, weighed_input(flat, weighed), &config);
        Outcome::tokens([grad]).and([loss])
    }
}
