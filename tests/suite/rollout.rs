//! Before stage 5: weights and rejections where trainer and sampler disagree.

mod masks;
mod resample;

use tokenwise::{rollout::*, Divisor, MeanConfig, Result};
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
    errors::domains::*,
    naive::{masks as naive_masks, parse as naive_parse, rollout as naive},
    reward::DIVISORS,
};
pub(crate) use masks::{
    HighEntropyMask, KlMask, M2poMask, OffPolicySequenceMask, ProbabilityDifference, ResponseMaskFromEos, RolloutGate,
    SequenceVeto,
};
pub(crate) use resample::{DynamicSamplingFilter, PfPpoIndices, PfPpoWeights};

pub(crate) fn input<R: Number>(flat: &Flat<R>) -> RolloutInput<'_, R> {
    RolloutInput {
        old_log_probs: flat.column(Column::OldLogProbs),
        rollout_log_probs: flat.column(Column::RefLogProbs),
    }
}

/// A mask as numbers.
pub(crate) fn bits<R: Number>(keep: &[bool]) -> Vec<R> {
    keep.iter().map(|&keep| if keep { R::one() } else { R::zero() }).collect()
}

pub(crate) fn weights_config(random: &mut Random) -> RolloutConfig {
    RolloutConfig {
        level: random.pick(&[RolloutLevel::Token, RolloutLevel::Sequence, RolloutLevel::Geometric]),
        bound: random.pick(&[
            WeightBound::Unbounded,
            WeightBound::Truncate { upper: 1.25 },
            WeightBound::Zero { lower: 0.75, upper: 1.25 },
            WeightBound::Clamp { lower: 0.875, upper: 1.125 },
        ]),
        log_bound: random.pick(&[LogBound::Unbounded, LogBound::At(20.0), LogBound::At(0.5)]),
        normalize: random.pick(&[BatchNormalize::Off, BatchNormalize::ByLevel, BatchNormalize::Tokens]),
        unscored: random.pick(&[Unscored::Nan, Unscored::Ignore]),
        divisor: random.pick(&DIVISORS),
    }
}

pub(crate) struct RolloutWeights;
impl Case for RolloutWeights {
    const NAME: &'static str = "rollout_weights";
    const UNITS: [f64; 2] = [20.0, 2.0];
    const DOMAINS: &'static [Row] = &[
        any().with(CLAMP).numbers(CLAMPED),
        any().with(r#"{ "bound": { "kind": "truncate" } }"#).numbers(&[inside("bound.upper", "upper", POSITIVE)]),
        needs_one().with(r#"{ "bound": { "kind": "clamp" }, "normalize": "by-level" }"#).numbers(CLAMPED),
    ];
    const SEQUENCES_ALONE: bool = false;
    type Config = RolloutConfig;
    fn config(random: &mut Random) -> RolloutConfig {
        weights_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: RolloutConfig) -> Result<Outcome<R>> {
        let mut weights = unwritten(flat.tokens());
        let factor = rollout_weights(&flat.batch(), input(flat), &config, &mut weights)?;
        Ok(Outcome::tokens([weights]).and([factor]))
    }
    fn naive(flat: &Flat<f64>, config: RolloutConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs, rollout_log_probs } = input(flat);
        let (weights, factor) = naive::rollout_weights(tokens(flat), old_log_probs, rollout_log_probs, &config);
        Outcome::tokens([weights]).and([factor])
    }
}

/// The same without what is of the batch.
pub(crate) struct RolloutWeightsAlone;
impl Case for RolloutWeightsAlone {
    const NAME: &'static str = "rollout_weights";
    const UNITS: [f64; 2] = [20.0, 2.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = RolloutConfig;
    fn config(random: &mut Random) -> RolloutConfig {
        RolloutConfig { normalize: BatchNormalize::Off, ..weights_config(random) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: RolloutConfig) -> Result<Outcome<R>> {
        RolloutWeights::run(flat, config)
    }
    fn naive(flat: &Flat<f64>, config: RolloutConfig) -> Outcome<f64> {
        RolloutWeights::naive(flat, config)
    }
}

pub(crate) struct RolloutWeightMetrics;
impl RolloutWeightMetrics {
    /// The variance relative to the mean: where weights are equal, the root of its rounding would hide everything else.
    fn steady(mut numbers: Vec<f64>) -> Vec<f64> {
        numbers[1] /= (numbers[0] * numbers[0]).max(1.0);
        numbers
    }
}
impl Case for RolloutWeightMetrics {
    const NAME: &'static str = "rollout_weight_metrics";
    const UNITS: [f64; 2] = [60.0, 2.0];
    const DOMAINS: &'static [Row] = &[needs_one().with(CLAMP).numbers(CLAMPED)];
    const SEQUENCES_ALONE: bool = false;
    type Config = RolloutConfig;
    fn config(random: &mut Random) -> RolloutConfig {
        weights_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: RolloutConfig) -> Result<Outcome<R>> {
        let mut metrics = rollout_weight_metrics(&flat.batch(), input(flat), &config)?;
        metrics.std *= metrics.std;
        Ok(Outcome::numbers(Self::steady(metrics.entries().map(|(_, value)| value).collect())))
    }
    fn naive(flat: &Flat<f64>, config: RolloutConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs, rollout_log_probs } = input(flat);
        let metrics = naive::rollout_weight_metrics(tokens(flat), old_log_probs, rollout_log_probs, &config);
        Outcome::numbers(Self::steady(metrics))
    }
}

pub(crate) type Criteria = ([Criterion; 2], Divisor);

pub(crate) fn criteria(random: &mut Random) -> Criteria {
    let mut criterion = || {
        let option = random.pick(&RejectionOption::ALL);
        let upper = random.pick(if option.takes_ratios() { &[1.125, 1.5, 8.0] } else { &[0.01, 0.25, 4.0] });
        Criterion { option, lower: random.pick(&[0.5, 0.875, 1.0]), upper }
    };
    ([criterion(), criterion()], random.pick(&DIVISORS))
}

pub(crate) struct RolloutRejection;
impl Case for RolloutRejection {
    const NAME: &'static str = "rollout_rejection";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().with(ONE_CRITERION)];
    const SEQUENCES_ALONE: bool = true;
    type Config = Criteria;
    fn config(random: &mut Random) -> Criteria {
        criteria(random)
    }
    fn run<R: Number>(flat: &Flat<R>, (criteria, divisor): Criteria) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        let config = RejectionConfig { criteria: &criteria, divisor };
        rollout_rejection(&flat.batch(), input(flat), &config, &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, (criteria, divisor): Criteria) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::tokens([naive::rollout_rejection(tokens(flat), old, rollout, &criteria, divisor)])
    }
}

pub(crate) struct RolloutRejectionMetrics;
impl Case for RolloutRejectionMetrics {
    const NAME: &'static str = "rollout_rejection_metrics";
    const UNITS: [f64; 2] = [200.0, 2.0];
    const DOMAINS: &'static [Row] = &[needs_one().with(ONE_CRITERION)];
    const SEQUENCES_ALONE: bool = false;
    type Config = Criteria;
    fn config(random: &mut Random) -> Criteria {
        criteria(random)
    }
    fn run<R: Number>(flat: &Flat<R>, (criteria, divisor): Criteria) -> Result<Outcome<R>> {
        let mut metrics = [CriterionMetrics::default(); 2];
        let config = RejectionConfig { criteria: &criteria, divisor };
        let totals = rollout_rejection_metrics(&flat.batch(), input(flat), &config, &mut metrics)?;
        // the variance, as above
        metrics.iter_mut().for_each(|metrics| metrics.std *= metrics.std);
        let entries = metrics.iter().flat_map(CriterionMetrics::entries).chain(totals.entries());
        Ok(Outcome::numbers(entries.map(|(_, value)| value).collect::<Vec<f64>>()))
    }
    fn naive(flat: &Flat<f64>, (criteria, divisor): Criteria) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::numbers(naive::rollout_rejection_metrics(tokens(flat), old, rollout, &criteria, divisor))
    }
}

pub(crate) struct RolloutMismatch;
impl Case for RolloutMismatch {
    const NAME: &'static str = "rollout_mismatch";
    const UNITS: [f64; 2] = [30.0, 3.0];
    const DOMAINS: &'static [Row] = &[needs_one()];
    const SEQUENCES_ALONE: bool = false;
    type Config = Divisor;
    fn config(random: &mut Random) -> Divisor {
        random.pick(&DIVISORS)
    }
    fn run<R: Number>(flat: &Flat<R>, divisor: Divisor) -> Result<Outcome<R>> {
        let mismatch = rollout_mismatch(&flat.batch(), input(flat), &MeanConfig { divisor })?;
        Ok(Outcome::numbers(mismatch.entries().map(|(_, value)| value)))
    }
    fn naive(flat: &Flat<f64>, divisor: Divisor) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::numbers(naive_masks::rollout_mismatch(tokens(flat), old, rollout, divisor))
    }
}

pub(crate) struct ParseRejection;
impl Case for ParseRejection {
    const NAME: &'static str = "parse_rejection";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = (&'static str, &'static str);
    fn config(random: &mut Random) -> Self::Config {
        let options =
            random.pick(&["token_k1,seq_max_k2", " seq_sum_k1 , ,token_k3,seq_sum_k1", "seq_mean_k1,token_k1"]);
        (options, random.pick(&["2.0", "1.5, 1e3", "8"]))
    }
    fn run<R: Number>(_: &Flat<R>, (options, thresholds): Self::Config) -> Result<Outcome<R>> {
        let mut criteria = [Criterion::default(); 4];
        let count = parse_rejection(options, thresholds, &mut criteria)?;
        let numbers = criteria[..count].iter().flat_map(|criterion| {
            let place = RejectionOption::ALL.iter().position(|option| *option == criterion.option).unwrap();
            [place as f64, criterion.lower, criterion.upper]
        });
        Ok(Outcome::numbers(numbers.collect::<Vec<f64>>()))
    }
    fn naive(_: &Flat<f64>, (options, thresholds): Self::Config) -> Outcome<f64> {
        Outcome::numbers(naive_parse::parse_rejection(options, thresholds))
    }
}

pub(crate) struct ParseWeightBound;
impl ParseWeightBound {
    fn numbers<R: Number>(bound: WeightBound) -> Outcome<R> {
        match bound {
            WeightBound::Zero { lower, upper } => Outcome::numbers([lower, upper]),
            WeightBound::Truncate { upper } => Outcome::numbers([upper]),
            other => panic!("{other:?}"),
        }
    }
}
impl Case for ParseWeightBound {
    const NAME: &'static str = "parse_weight_bound";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = &'static str;
    fn config(random: &mut Random) -> Self::Config {
        random.pick(&["2.0", " 1e3", "0.5_5.0", " 0.1 _ 0.1 "])
    }
    fn run<R: Number>(_: &Flat<R>, threshold: Self::Config) -> Result<Outcome<R>> {
        Ok(Self::numbers(parse_weight_bound(threshold)?))
    }
    fn naive(_: &Flat<f64>, threshold: Self::Config) -> Outcome<f64> {
        Self::numbers(naive_parse::parse_weight_bound(threshold))
    }
}

crate::case::tests! {
    rollout_weights: RolloutWeights,
    rollout_weights_alone: RolloutWeightsAlone,
    rollout_weight_metrics: RolloutWeightMetrics,
    rollout_rejection: RolloutRejection,
    rollout_rejection_metrics: RolloutRejectionMetrics,
    rollout_mismatch: RolloutMismatch,
    parse_rejection: ParseRejection,
    parse_weight_bound: ParseWeightBound,
    rollout_gate: RolloutGate,
    off_policy_sequence_mask: OffPolicySequenceMask,
    kl_mask: KlMask,
    m2po_mask: M2poMask,
    sequence_veto: SequenceVeto,
    high_entropy_mask: HighEntropyMask,
    probability_difference: ProbabilityDifference,
    response_mask_from_eos: ResponseMaskFromEos,
    dynamic_sampling_filter: DynamicSamplingFilter,
    pf_ppo_weights: PfPpoWeights,
    pf_ppo_indices: PfPpoIndices,
}
