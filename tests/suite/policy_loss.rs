//! Stage 5, continued: policy losses beyond the clip.

mod choices;
mod sequences;

use tokenwise::{loss::*, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Flat, Number, Random},
    naive::{covariance_loss, sequence_loss, token_loss},
};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
    loss::{weighed_input, Weighing},
    reward::DIVISORS,
};

pub(crate) use choices::{ClipCov, ClipCovSelection, PositiveNll, Topr};
pub(crate) use sequences::{pairs, Gmpo, Gvpo, Luspo, Vespo};

/// A config, how it aggregates, and whether there are rollout weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<C> {
    pub(crate) config: C,
    pub(crate) weighing: Weighing,
    pub(crate) weighed: bool,
}

impl<C> Choice<C> {
    pub(crate) fn new(random: &mut Random, config: C) -> Self {
        Self { config, weighing: Weighing::new(random), weighed: random.below(2) == 0 }
    }
}

pub(crate) fn numbers(result: PolicyLoss) -> [f64; 4] {
    [result.loss, result.clip_fraction, result.clip_fraction_lower, result.kl]
}

/// Those that take the policy's input and a config with an aggregation, and return a [`PolicyLoss`].
macro_rules! cases {
    ($($case:ident: $textbook:ident::$call:ident, $config:ident, $make:expr;)*) => {$(
        pub(crate) struct $case;
        impl Case for $case {
            const FORMULA: Formula = Formula::$case;
            const SEQUENCES_ALONE: bool = false;
            type Config = Choice<$config<'static>>;
            fn config(random: &mut Random) -> Self::Config {
                let make: fn(&mut Random) -> $config<'static> = $make;
                let config = make(random);
                Choice::new(random, config)
            }
            fn run<R: Number>(flat: &Flat<R>, Choice { config, weighing, weighed }: Self::Config) -> Result<Outcome<R>> {
                let mut grad = unwritten(flat.tokens());
                let result = weighing.with(flat, |aggregate| {
                    $call(&flat.batch(), weighed_input(flat, weighed), &$config { aggregate, ..config }, &mut grad)
                })?;
                Ok(Outcome::tokens([grad]).and(numbers(result)))
            }
            fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
                let (result, grad) = weighing.with(flat, |aggregate| {
                    let config = $config { aggregate, ..config };
                    $textbook::$call(tokens(flat), weighed_input(flat, weighed), &config)
                });
                Outcome::tokens([grad]).and(numbers(result))
            }
        }
    )*};
}

const BOUNDS: [Option<f64>; 3] = [None, Some(0.5), Some(20.0)];

fn dppo(random: &mut Random) -> DppoConfig<'static> {
    DppoConfig {
        // not 0: whether a divergence is above it would be decided by rounding
        clip_low: random.pick(&[0.125, 0.03125, 0.0078125]),
        clip_high: random.pick(&[0.125, 0.0625, 0.0078125]),
        ratio_cap: random.pick(&[1.25, 3.0]),
        log_ratio_bound: random.pick(&BOUNDS),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    }
}

cases! {
    Reinforce: token_loss::reinforce, ReinforceConfig, |random| {
        ReinforceConfig { divisor: random.pick(&DIVISORS), ..Default::default() }
    };
    Cispo: token_loss::cispo, CispoConfig, |random| CispoConfig {
        bounds: random.pick(&[
            CispoBounds::Relative { low: 0.25, high: 0.3125 },
            CispoBounds::Relative { low: 1.0, high: 0.0 },
            CispoBounds::Absolute { high: 1.25 },
            CispoBounds::Absolute { high: 5.0 },
        ]),
        log_ratio_bound: random.pick(&BOUNDS),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    };
    TisLoss: token_loss::tis_loss, ReinforceConfig, |random| {
        ReinforceConfig { divisor: random.pick(&DIVISORS), ..Default::default() }
    };
    Sapo: token_loss::sapo, SapoConfig, |random| SapoConfig {
        tau_positive: random.pick(&[1.0, 0.5]),
        tau_negative: random.pick(&[1.0625, 4.0]),
        log_ratio_bound: random.pick(&BOUNDS),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    };
    Dro: token_loss::dro, DroConfig, |random| {
        let (beta, divisor) = (random.pick(&[0.125, 1.0, 2.5]), random.pick(&DIVISORS));
        DroConfig { beta, divisor, aggregate: Aggregate::default() }
    };
    DppoTv: token_loss::dppo_tv, DppoConfig, dppo;
    DppoKl: token_loss::dppo_kl, DppoConfig, dppo;
    Gspo: sequence_loss::gspo, GspoConfig, |random| GspoConfig {
        clip_low: random.pick(&[0.03125, 0.25]),
        clip_high: random.pick(&[0.0625, 0.25]),
        form: random.pick(&[GspoForm::Sequence, GspoForm::Token]),
        log_ratio_cap: random.pick(&[None, Some(0.125), Some(10.0)]),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    };
    KlCov: covariance_loss::kl_cov, KlCovConfig, |random| KlCovConfig {
        ratio: random.pick(&[2e-4, 0.125, 0.5, 1.0]),
        kl_coef: random.pick(&[0.0, 0.125, 1.0]),
        divisor: random.pick(&DIVISORS),
        ..Default::default()
    };
}
