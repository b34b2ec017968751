//! Stage 5: losses and their gradients.

use serde::Serialize;
use tokenwise::{loss::*, Divisor, Result};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{call, tokens, Case, Outcome},
    errors::domains::*,
    naive,
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

/// What most policy losses read.
pub(crate) const POLICY: [Column; 3] = [Column::LogProbs, Column::OldLogProbs, Column::Advantages];

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

/// The same with rollout weights, if chosen.
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

/// A config without its aggregation, the aggregation, and whether there are rollout weights.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<C> {
    pub(crate) config: C,
    pub(crate) weighing: Weighing,
    pub(crate) weighed: bool,
}

impl<C: Copy + Serialize> Choice<C> {
    pub(crate) fn new(random: &mut Random, config: C) -> Self {
        Self { config, weighing: Weighing::new(random), weighed: random.below(2) == 0 }
    }

    /// Calls a loss by its name. `special` gives columns that are not the usual ones.
    pub(crate) fn call<R: Number>(
        &self,
        name: &str,
        flat: &Flat<R>,
        special: impl Fn(&str) -> Option<Array<R>>,
    ) -> Result<Outcome<R>> {
        self.weighing.with(flat, |aggregate| {
            call_loss(name, flat, self.config, aggregate, |column| match column {
                "weights" => self.weighed.then(|| Array::Real(flat.column(Column::Weights).to_vec())),
                _ => special(column),
            })
        })
    }
}

/// Calls a loss by its name with an aggregation, whose prompts are columns of the call.
pub(crate) fn call_loss<R: Number>(
    name: &str,
    flat: &Flat<R>,
    config: impl Serialize,
    aggregate: Aggregate<'_>,
    special: impl Fn(&str) -> Option<Array<R>>,
) -> Result<Outcome<R>> {
    let mut config = serde_json::to_value(config).unwrap();
    let settings = serde_json::to_value(aggregate).unwrap();
    match config.as_object_mut() {
        Some(config) => drop(config.insert("aggregate".into(), settings)),
        // the aggregation is all of the config
        None => config = settings,
    }
    call(name, flat, config, |column| match (column, aggregate.mode) {
        ("group_tokens", AggregateMode::PromptMean { tokens, .. }) => Some(Array::Count(tokens.to_vec())),
        _ => special(column),
    })
}

/// The numbers that a loss returns.
pub(crate) trait Numbers {
    fn numbers(self) -> Vec<f64>;
}

impl Numbers for f64 {
    fn numbers(self) -> Vec<f64> {
        vec![self]
    }
}

impl Numbers for PolicyLoss {
    fn numbers(self) -> Vec<f64> {
        vec![self.loss, self.clip_fraction, self.clip_fraction_lower, self.kl]
    }
}

impl Numbers for VespoLoss {
    fn numbers(self) -> Vec<f64> {
        vec![self.loss, self.phi_mean]
    }
}

/// The cases of policy losses whose config has an aggregation: how far they may be off, their domains, a random config
/// and the textbook.
macro_rules! losses {
    ($($case:ident: $name:ident $units:expr, $domains:expr, $config:ident, $random:expr, $textbook:expr;)*) => {$(
        pub(crate) struct $case;
        impl Case for $case {
            const NAME: &'static str = stringify!($name);
            const UNITS: [f64; 2] = $units;
            const DOMAINS: &'static [Row] = $domains;
            const SEQUENCES_ALONE: bool = false;
            type Config = Choice<$config<'static>>;
            fn config(random: &mut Random) -> Self::Config {
                let make: fn(&mut Random) -> $config<'static> = $random;
                let config = make(random);
                Choice::new(random, config)
            }
            fn run<R: Number>(flat: &Flat<R>, choice: Self::Config) -> tokenwise::Result<Outcome<R>> {
                choice.call(Self::NAME, flat, |_| None)
            }
            fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
                let (result, grad) = weighing.with(flat, |aggregate| {
                    let config = $config { aggregate, ..config };
                    crate::loss::textbook(flat, weighed_input(flat, weighed), &config, $textbook)
                });
                Outcome::tokens([grad]).and(result.numbers())
            }
        }
    )*};
}
pub(crate) use losses;

/// Applies a textbook version: names the types that a closure would otherwise have to.
pub(crate) fn textbook<C, N>(
    flat: &Flat<f64>,
    input: PolicyLossInput<'_, f64>,
    config: &C,
    textbook: impl Fn(&Flat<f64>, PolicyLossInput<'_, f64>, &C) -> (N, Vec<f64>),
) -> (N, Vec<f64>) {
    textbook(flat, input, config)
}

pub(crate) struct AggregateLoss;
impl Case for AggregateLoss {
    const NAME: &'static str = "aggregate";
    const UNITS: [f64; 2] = [6.0, 0.2];
    const DOMAINS: &'static [Row] = &[needs_one()];
    const SEQUENCES_ALONE: bool = false;
    type Config = Weighing;
    fn config(random: &mut Random) -> Weighing {
        Weighing::new(random)
    }
    fn run<R: Number>(flat: &Flat<R>, weighing: Weighing) -> Result<Outcome<R>> {
        let losses = || Some(Array::Real(flat.column(Column::Advantages).to_vec()));
        weighing.with(flat, |config| {
            call_loss(Self::NAME, flat, (), config, |column| losses().filter(|_| column == "losses"))
        })
    }
    fn naive(flat: &Flat<f64>, weighing: Weighing) -> Outcome<f64> {
        let losses = flat.column(Column::Advantages);
        let (loss, weights) = weighing.with(flat, |config| naive::loss::aggregate(tokens(flat), losses, &config));
        Outcome::tokens([weights]).and([loss])
    }
}

pub(crate) struct GroupTokens;
impl Case for GroupTokens {
    const NAME: &'static str = "group_tokens";
    const UNITS: [f64; 2] = [0.0, 0.0];
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
        Outcome::numbers(naive::loss::group_tokens(tokens(flat), &flat.groups()))
    }
}

pub(crate) struct Surrogate;
impl Case for Surrogate {
    const NAME: &'static str = "surrogate";
    const UNITS: [f64; 2] = [10.0, 8.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[LOG_RATIO_BOUND])];
    const SEQUENCES_ALONE: bool = false;
    type Config = Choice<SurrogateConfig<'static>>;
    fn config(random: &mut Random) -> Self::Config {
        let (weighing, log_ratio_bound) = (Weighing::new(random), random.pick(&[None, Some(0.5), Some(20.0)]));
        let config = SurrogateConfig { log_ratio_bound, ..Default::default() };
        Choice { config, weighing, weighed: random.below(2) == 0 }
    }
    fn run<R: Number>(flat: &Flat<R>, choice: Self::Config) -> Result<Outcome<R>> {
        choice.call(Self::NAME, flat, |_| None)
    }
    fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
        let (loss, grad) = weighing.with(flat, |aggregate| {
            let config = SurrogateConfig { aggregate, ..config };
            naive::loss::surrogate(tokens(flat), weighed_input(flat, weighed), &config)
        });
        Outcome::tokens([grad]).and([loss])
    }
}

losses! {
    PpoClip: ppo_clip [20.0, 4.0], &[needs_one().numbers(&[
        key("clip_low", NOT_NEGATIVE),
        key("clip_high", NOT_NEGATIVE),
        inside("dual_clip.negative_only", "dual_clip", ABOVE_1),
        LOG_RATIO_BOUND,
    ])], PpoConfig,
        |random| PpoConfig {
            clip_low: random.pick(&[0.25, 0.0625, 1.0]),
            clip_high: random.pick(&[0.25, 0.3125, 0.0]),
            dual_clip: dual_clip(random),
            log_ratio_bound: random.pick(&[None, Some(1.0), Some(20.0)]),
            divisor: random.pick(&DIVISORS),
            reported_kl: random.pick(&[ReportedKl::Bounded, ReportedKl::Unbounded]),
            aggregate: Aggregate::default(),
        },
        |flat, input, config| {
            let (mut result, grad) = naive::loss::ppo_clip(tokens(flat), input, config);
            [result.clip_fraction, result.clip_fraction_lower, result.kl] =
                none_if_empty(flat, [result.clip_fraction, result.clip_fraction_lower, result.kl]);
            (result, grad)
        };
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
    const NAME: &'static str = "value_loss";
    const UNITS: [f64; 2] = [3.0, 2.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("clip", NOT_NEGATIVE)])];
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
        weighing.with(flat, |aggregate| call_loss(Self::NAME, flat, config, aggregate, |_| None))
    }
    fn naive(flat: &Flat<f64>, (weighing, config): Self::Config) -> Outcome<f64> {
        let ValueLossInput { predictions, values, returns } = value_input(flat);
        let (result, grad) = weighing.with(flat, |aggregate| {
            naive::loss::value_loss(tokens(flat), predictions, values, returns, &ValueConfig { aggregate, ..config })
        });
        let [fraction] = none_if_empty(flat, [result.clip_fraction]);
        Outcome::tokens([grad]).and([result.loss, fraction])
    }
}

pub(crate) struct EntropyBonus;
impl Case for EntropyBonus {
    const NAME: &'static str = "entropy_bonus";
    const UNITS: [f64; 2] = [6.0, 0.1];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("coefficient", FINITE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, f64);
    fn config(random: &mut Random) -> Self::Config {
        (Weighing::new(random), random.pick(&[0.0, 0.01, -0.5]))
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, coefficient): Self::Config) -> Result<Outcome<R>> {
        let config = EntropyBonusConfig { coefficient, ..Default::default() };
        let entropy = || Some(Array::Real(flat.column(Column::Weights).to_vec()));
        weighing.with(flat, |aggregate| {
            call_loss(Self::NAME, flat, config, aggregate, |column| entropy().filter(|_| column == "entropy"))
        })
    }
    fn naive(flat: &Flat<f64>, (weighing, coefficient): Self::Config) -> Outcome<f64> {
        let entropy = flat.column(Column::Weights);
        let (loss, grad) =
            weighing.with(flat, |config| naive::loss::entropy_bonus(tokens(flat), entropy, coefficient, &config));
        Outcome::tokens([grad]).and([loss])
    }
}

crate::case::tests! {
    aggregate: AggregateLoss {
        nan_stays_in_sums(&[(Column::Advantages, &[0])]);
    },
    group_tokens: GroupTokens,
    surrogate: Surrogate {
        slope(|_| vec![0.5, -0.5]);
        nan_stays_in_its_token(&[Column::LogProbs, Column::OldLogProbs, Column::Advantages]);
        nan_stays_in_sums(&[(Column::LogProbs, &[0]), (Column::OldLogProbs, &[0]), (Column::Advantages, &[0])]);
    },
    ppo_clip: PpoClip {
        slope(|choice| {
        let bounds = [1.0 - choice.config.clip_low, 1.0 + choice.config.clip_high, 1.125, 1.5, 3.0].map(f64::ln);
        [bounds.as_slice(), &[1.0, -1.0]].concat()
    });
        nan_stays_in_its_token(&[Column::LogProbs, Column::OldLogProbs, Column::Advantages]);
        nan_stays_in_sums(&[(Column::LogProbs, &[0]), (Column::OldLogProbs, &[0]), (Column::Advantages, &[0]), (Column::LogProbs, &[3])]);
    },
    value_loss: ValueLoss {
        nan_stays_in_its_token(&[Column::Predictions, Column::Returns]);
        nan_stays_in_sums(&[(Column::Predictions, &[0]), (Column::Returns, &[0])]);
    },
    entropy_bonus: EntropyBonus {
        nan_stays_in_sums(&[(Column::Weights, &[0])]);
    },
}
