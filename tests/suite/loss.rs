//! Stage 5: losses and their gradients.

use tokenwise::{loss::*, Divisor, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::{self, loss as textbook},
};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
    reward::DIVISORS,
};

/// An aggregation that can be built for any batch: prompts and counts are its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weighing {
    pub(crate) mode: usize,
    pub(crate) global: bool,
    pub(crate) empty_rows: EmptyRows,
    pub(crate) divisor: Divisor,
}

pub(crate) const MODES: usize = 6;

impl Weighing {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            mode: random.below(MODES),
            global: random.below(2) == 0,
            empty_rows: random.pick(&[EmptyRows::Excluded, EmptyRows::Counted]),
            divisor: random.pick(&DIVISORS),
        }
    }

    pub(crate) fn with<R: Number, T>(&self, flat: &Flat<R>, call: impl FnOnce(Aggregate<'_>) -> T) -> T {
        let (batch, groups) = (flat.batch(), flat.groups());
        let mut counted = vec![0; groups.count()];
        group_tokens(&batch, &groups, &mut counted).unwrap();
        let global = GlobalCounts { tokens: 50, sequences: 12, prompts: 5, ranks: 4 };
        call(Aggregate {
            mode: [
                AggregateMode::TokenMean,
                AggregateMode::TokenSum,
                AggregateMode::SequenceMeanTokenSum,
                AggregateMode::SequenceMeanTokenSumNorm { scale: 24.0 },
                AggregateMode::SequenceMeanTokenMean,
                AggregateMode::PromptMean { groups, tokens: &counted },
            ][self.mode],
            counts: if self.global { Counts::Global(global) } else { Counts::Local },
            empty_rows: self.empty_rows,
            divisor: self.divisor,
        })
    }
}

pub(crate) fn dual_clip(random: &mut Random) -> DualClip {
    random.pick(&[
        DualClip::Off,
        DualClip::NegativeOnly(1.5),
        DualClip::NegativeOnly(3.0),
        DualClip::BothSigns(1.125),
        DualClip::BothSigns(1.5),
    ])
}

pub(crate) fn policy_input<R: Number>(flat: &Flat<R>) -> PolicyLossInput<'_, R> {
    PolicyLossInput {
        log_probs: flat.column(Column::LogProbs),
        old_log_probs: flat.column(Column::OldLogProbs),
        advantages: flat.column(Column::Advantages),
        weights: None,
    }
}

/// The same with rollout weights, if so chosen.
pub(crate) fn weighed_input<R: Number>(flat: &Flat<R>, weighed: bool) -> PolicyLossInput<'_, R> {
    PolicyLossInput { weights: weighed.then(|| flat.column(Column::Weights)), ..policy_input(flat) }
}

pub(crate) fn value_input<R: Number>(flat: &Flat<R>) -> ValueLossInput<'_, R> {
    ValueLossInput {
        predictions: flat.column(Column::Predictions),
        values: flat.column(Column::Values),
        returns: flat.column(Column::Returns),
    }
}

pub(crate) struct AggregateLoss;
impl Case for AggregateLoss {
    const FORMULA: Formula = Formula::Aggregate;
    const SEQUENCES_ALONE: bool = false;
    type Config = Weighing;
    fn config(random: &mut Random) -> Weighing {
        Weighing::new(random)
    }
    fn run<R: Number>(flat: &Flat<R>, weighing: Weighing) -> Result<Outcome<R>> {
        let mut weights = unwritten(flat.tokens());
        let losses = flat.column(Column::Advantages);
        let loss = weighing.with(flat, |config| aggregate(&flat.batch(), losses, &config, &mut weights))?;
        Ok(Outcome::tokens([weights]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, weighing: Weighing) -> Outcome<f64> {
        let losses = flat.column(Column::Advantages);
        let (loss, weights) = weighing.with(flat, |config| textbook::aggregate(tokens(flat), losses, &config));
        Outcome::tokens([weights]).and([loss])
    }
}

pub(crate) struct GroupTokens;
impl Case for GroupTokens {
    const FORMULA: Formula = Formula::GroupTokens;
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let groups = flat.groups();
        let mut out = vec![u64::MAX; groups.count()];
        group_tokens(&flat.batch(), &groups, &mut out)?;
        Ok(Outcome::numbers(out.iter().map(|&n| n as f64).collect::<Vec<_>>()))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::numbers(textbook::group_tokens(tokens(flat), &flat.groups()))
    }
}

pub(crate) struct Surrogate;
impl Case for Surrogate {
    const FORMULA: Formula = Formula::Surrogate;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, Option<f64>, bool);
    fn config(random: &mut Random) -> Self::Config {
        (Weighing::new(random), random.pick(&[None, Some(0.5), Some(20.0)]), random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, log_ratio_bound, weighed): Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let loss = weighing.with(flat, |aggregate| {
            let config = SurrogateConfig { log_ratio_bound, aggregate };
            surrogate(&flat.batch(), weighed_input(flat, weighed), &config, &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, (weighing, log_ratio_bound, weighed): Self::Config) -> Outcome<f64> {
        let (loss, grad) = weighing.with(flat, |aggregate| {
            let config = SurrogateConfig { log_ratio_bound, aggregate };
            textbook::surrogate(tokens(flat), weighed_input(flat, weighed), &config)
        });
        Outcome::tokens([grad]).and([loss])
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PpoChoice {
    pub(crate) weighing: Weighing,
    pub(crate) config: PpoConfig<'static>,
    pub(crate) weighed: bool,
}

pub(crate) struct PpoClip;
impl Case for PpoClip {
    const FORMULA: Formula = Formula::PpoClip;
    const SEQUENCES_ALONE: bool = false;
    type Config = PpoChoice;
    fn config(random: &mut Random) -> PpoChoice {
        let config = PpoConfig {
            clip_low: random.pick(&[0.25, 0.0625, 1.0]),
            clip_high: random.pick(&[0.25, 0.3125, 0.0]),
            dual_clip: dual_clip(random),
            log_ratio_bound: random.pick(&[None, Some(1.0), Some(20.0)]),
            divisor: random.pick(&DIVISORS),
            reported_kl: random.pick(&[ReportedKl::Bounded, ReportedKl::Unbounded]),
            aggregate: Aggregate::default(),
        };
        PpoChoice { weighing: Weighing::new(random), config, weighed: random.below(2) == 0 }
    }
    fn run<R: Number>(flat: &Flat<R>, PpoChoice { weighing, config, weighed }: PpoChoice) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let result = weighing.with(flat, |aggregate| {
            ppo_clip(&flat.batch(), weighed_input(flat, weighed), &PpoConfig { aggregate, ..config }, &mut grad)
        })?;
        let numbers = [result.loss, result.clip_fraction, result.clip_fraction_lower, result.kl];
        Ok(Outcome::tokens([grad]).and(numbers))
    }
    fn naive(flat: &Flat<f64>, PpoChoice { weighing, config, weighed }: PpoChoice) -> Outcome<f64> {
        let (result, grad) = weighing.with(flat, |aggregate| {
            let config = PpoConfig { aggregate, ..config };
            textbook::ppo_clip(tokens(flat), weighed_input(flat, weighed), &config)
        });
        let metrics = [result.clip_fraction, result.clip_fraction_lower, result.kl];
        Outcome::tokens([grad]).and([[result.loss].as_slice(), &none_if_empty(flat, metrics)].concat())
    }
}

/// The metrics of a batch without kept tokens are 0.
fn none_if_empty<const N: usize>(flat: &Flat<f64>, metrics: [f64; N]) -> [f64; N] {
    let tokens: naive::Tokens<'_> = tokens(flat);
    if tokens.kept().is_empty() {
        [0.0; N]
    } else {
        metrics
    }
}

pub(crate) struct ValueLoss;
impl Case for ValueLoss {
    const FORMULA: Formula = Formula::ValueLoss;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, ValueConfig<'static>);
    fn config(random: &mut Random) -> Self::Config {
        let config = ValueConfig {
            clip: random.pick(&[None, Some(0.5), Some(0.25), Some(0.0)]),
            factor: random.pick(&[ValueFactor::Half, ValueFactor::Whole]),
            aggregate: Aggregate::default(),
            divisor: random.pick(&DIVISORS),
        };
        (Weighing::new(random), config)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config): Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let result = weighing.with(flat, |aggregate| {
            value_loss(&flat.batch(), value_input(flat), &ValueConfig { aggregate, ..config }, &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and([result.loss, result.clip_fraction]))
    }
    fn naive(flat: &Flat<f64>, (weighing, config): Self::Config) -> Outcome<f64> {
        let ValueLossInput { predictions, values, returns } = value_input(flat);
        let (result, grad) = weighing.with(flat, |aggregate| {
            textbook::value_loss(tokens(flat), predictions, values, returns, &ValueConfig { aggregate, ..config })
        });
        let [fraction] = none_if_empty(flat, [result.clip_fraction]);
        Outcome::tokens([grad]).and([result.loss, fraction])
    }
}

pub(crate) struct EntropyBonus;
impl Case for EntropyBonus {
    const FORMULA: Formula = Formula::EntropyBonus;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, f64);
    fn config(random: &mut Random) -> Self::Config {
        (Weighing::new(random), random.pick(&[0.0, 0.01, -0.5]))
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, coefficient): Self::Config) -> Result<Outcome<R>> {
        let mut grad = unwritten(flat.tokens());
        let loss = weighing.with(flat, |aggregate| {
            let config = EntropyBonusConfig { coefficient, aggregate };
            entropy_bonus(&flat.batch(), flat.column(Column::Weights), &config, &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, (weighing, coefficient): Self::Config) -> Outcome<f64> {
        let entropy = flat.column(Column::Weights);
        let (loss, grad) =
            weighing.with(flat, |config| textbook::entropy_bonus(tokens(flat), entropy, coefficient, &config));
        Outcome::tokens([grad]).and([loss])
    }
}
