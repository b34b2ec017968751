//! Losses that are told, or decide, which tokens and sequences to treat otherwise.

use tokenwise::{loss::*, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::{covariance_loss, token_loss},
};

use super::{numbers, Choice};
use crate::{
    case::{tokens, unwritten, Case, Outcome},
    loss::weighed_input,
    reward::DIVISORS,
};

pub(crate) struct Topr;
impl Case for Topr {
    const FORMULA: Formula = Formula::Topr;
    const SEQUENCES_ALONE: bool = false;
    type Config = Choice<ToprConfig<'static>>;
    fn config(random: &mut Random) -> Self::Config {
        let config = ToprConfig {
            positive: random.pick(&[1.0, 0.5]),
            negative: random.pick(&[1.0, 0.25]),
            aggregate: Aggregate::default(),
        };
        Choice::new(random, config)
    }
    fn run<R: Number>(flat: &Flat<R>, Choice { config, weighing, weighed }: Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let loss = weighing.with(flat, |aggregate| {
            let config = ToprConfig { aggregate, ..config };
            topr(&flat.batch(), weighed_input(flat, weighed), &flat.scores, &config, &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
        let (loss, grad) = weighing.with(flat, |aggregate| {
            let config = ToprConfig { aggregate, ..config };
            token_loss::topr(tokens(flat), weighed_input(flat, weighed), &flat.scores, &config)
        });
        Outcome::tokens([grad]).and([loss])
    }
}

pub(crate) struct PositiveNll;
impl Case for PositiveNll {
    const FORMULA: Formula = Formula::PositiveNll;
    const SEQUENCES_ALONE: bool = false;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 0.125, 1.0])
    }
    fn run<R: Number>(flat: &Flat<R>, mu: f64) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let loss = positive_nll(&flat.batch(), flat.column(Column::LogProbs), &flat.scores, mu, &mut grad)?;
        Ok(Outcome::tokens([grad]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, mu: f64) -> Outcome<f64> {
        let log_probs = flat.column(Column::LogProbs);
        let (loss, grad) = token_loss::positive_nll(tokens(flat), log_probs, &flat.scores, mu);
        Outcome::tokens([grad]).and([loss])
    }
}

pub(crate) fn clip_cov_config(random: &mut Random) -> ClipCovConfig<'static> {
    ClipCovConfig {
        clip_low: random.pick(&[0.25, 0.0625]),
        clip_high: random.pick(&[0.25, 0.3125]),
        lower: random.pick(&[-0.5, 0.125, 1.0]),
        upper: random.pick(&[2.0, 5.0]),
        ratio: random.pick(&[2e-4, 0.125, 0.5, 1.0]),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    }
}

pub(crate) struct ClipCov;
impl ClipCov {
    /// A selection that is any column's: only that of kept slots matters.
    pub(crate) fn selected<R: Number>(flat: &Flat<R>) -> Vec<bool> {
        flat.column(Column::Kl).iter().map(|&x| x > R::narrow(0.5)).collect()
    }
}
impl Case for ClipCov {
    const FORMULA: Formula = Formula::ClipCov;
    const SEQUENCES_ALONE: bool = false;
    type Config = Choice<ClipCovConfig<'static>>;
    fn config(random: &mut Random) -> Self::Config {
        let config = clip_cov_config(random);
        Choice::new(random, config)
    }
    fn run<R: Number>(flat: &Flat<R>, Choice { config, weighing, weighed }: Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let result = weighing.with(flat, |aggregate| {
            let config = ClipCovConfig { aggregate, ..config };
            clip_cov(&flat.batch(), weighed_input(flat, weighed), &config, &Self::selected(flat), &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and(numbers(result)))
    }
    fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
        let (result, grad) = weighing.with(flat, |aggregate| {
            let config = ClipCovConfig { aggregate, ..config };
            covariance_loss::clip_cov(tokens(flat), weighed_input(flat, weighed), &config, &Self::selected(flat))
        });
        Outcome::tokens([grad]).and(numbers(result))
    }
}

pub(crate) struct ClipCovSelection;
impl Case for ClipCovSelection {
    const FORMULA: Formula = Formula::ClipCovSelection;
    const SEQUENCES_ALONE: bool = false;
    type Config = (ClipCovConfig<'static>, u64);
    fn config(random: &mut Random) -> Self::Config {
        (clip_cov_config(random), random.bits())
    }
    fn run<R: Number>(flat: &Flat<R>, (config, seed): Self::Config) -> Result<Outcome<R>> {
        let mut selected = vec![true; flat.tokens()];
        let input = weighed_input(flat, false);
        let chosen = clip_cov_selection(&flat.batch(), input, &config, seed, &mut selected)?;
        let selected = selected.iter().map(|&yes| if yes { R::one() } else { R::zero() }).collect();
        Ok(Outcome::tokens([selected]).and([chosen as f64]))
    }
    fn naive(flat: &Flat<f64>, (config, seed): Self::Config) -> Outcome<f64> {
        let input = weighed_input(flat, false);
        let selected = covariance_loss::clip_cov_selection(tokens(flat), input, &config, seed);
        let selected: Vec<f64> = selected.iter().map(|&yes| if yes { 1.0 } else { 0.0 }).collect();
        let chosen = selected.iter().sum();
        Outcome::tokens([selected]).and([chosen])
    }
}
