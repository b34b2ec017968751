//! Stage 6 again: numbers of sequences, order and noise; and stage 2's weighted KL.

use tokenwise::{
    divergence::{KlWeight, KlWeightedConfig},
    metric::*,
    Divisor, MeanConfig, Result,
};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{by_name, call, tokens, Case, Outcome},
    divergence::kl_config,
    errors::domains::*,
    naive::{divergence as naive_kl, metric as naive},
    reward::DIVISORS,
};

pub(crate) struct RowMeans;
impl Case for RowMeans {
    const NAME: &'static str = "row_means";
    const UNITS: [f64; 2] = [0.8, 0.4];
    const SEQUENCES_ALONE: bool = true;
    type Config = MeanConfig;
    fn config(random: &mut Random) -> MeanConfig {
        MeanConfig { divisor: random.pick(&DIVISORS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, MeanConfig { divisor }: MeanConfig) -> Outcome<f64> {
        Outcome::sequences([naive::row_means(tokens(flat), flat.column(Column::Values), divisor)])
    }
}

pub(crate) struct RowNormalize;
impl Case for RowNormalize {
    const NAME: &'static str = "row_normalize";
    const UNITS: [f64; 2] = [5.0, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("floor", POSITIVE)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = RowNormalizeConfig;
    fn config(random: &mut Random) -> RowNormalizeConfig {
        RowNormalizeConfig { floor: random.pick(&[1e-8, 0.5]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, RowNormalizeConfig { floor }: RowNormalizeConfig) -> Outcome<f64> {
        Outcome::tokens([naive::row_normalize(tokens(flat), flat.column(Column::Values), floor)])
    }
}

pub(crate) struct Quantile;
impl Case for Quantile {
    const NAME: &'static str = "quantile";
    const UNITS: [f64; 2] = [0.8, 2e-9];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("level", UNIT)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = QuantileConfig;
    fn config(random: &mut Random) -> QuantileConfig {
        QuantileConfig { level: random.pick(&[0.0, 0.1, 0.5, 0.9, 1.0]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, QuantileConfig { level }: QuantileConfig) -> Outcome<f64> {
        Outcome::numbers([naive::quantile(tokens(flat), flat.column(Column::Values), level)])
    }
}

pub(crate) struct EffectiveSampleSize;
impl Case for EffectiveSampleSize {
    const NAME: &'static str = "effective_sample_size";
    const UNITS: [f64; 2] = [20.0, 4e-8];
    const DOMAINS: &'static [Row] = &[needs_one()];
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::numbers([naive::effective_sample_size(tokens(flat), flat.column(Column::Weights))])
    }
}

pub(crate) struct VarianceProxy;
impl Case for VarianceProxy {
    const NAME: &'static str = "variance_proxy";
    const UNITS: [f64; 2] = [12.0, 0.6];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("gradient_norm", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (bool, f64, Divisor);
    fn config(random: &mut Random) -> Self::Config {
        (random.pick(&[false, true]), random.pick(&[0.0, 0.7]), random.pick(&DIVISORS))
    }
    fn run<R: Number>(flat: &Flat<R>, (weighed, gradient_norm, divisor): Self::Config) -> Result<Outcome<R>> {
        call(Self::NAME, flat, VarianceProxyConfig { gradient_norm, divisor }, |column| match column {
            "sum_pi_squared" => Some(Array::Real(flat.column(Column::Weights).to_vec())),
            "weights" => weighed.then(|| Array::Real(flat.column(Column::Values).to_vec())),
            _ => None,
        })
    }
    fn naive(flat: &Flat<f64>, (weighed, norm, divisor): Self::Config) -> Outcome<f64> {
        let columns = [Column::OldLogProbs, Column::Weights, Column::Advantages].map(|column| flat.column(column));
        let weights = weighed.then(|| flat.column(Column::Values));
        Outcome::numbers(naive::variance_proxy(tokens(flat), columns, weights, norm, divisor))
    }
}

pub(crate) fn kl_weighted_config(random: &mut Random) -> KlWeightedConfig {
    let weight = random.pick(&[
        KlWeight::Token,
        KlWeight::Sequence,
        KlWeight::TokenBounded,
        KlWeight::TokenFinite,
        KlWeight::ScoreFunction,
    ]);
    KlWeightedConfig { weight, kl: kl_config(random) }
}

const POLICIES: [Column; 3] = [Column::LogProbs, Column::RefLogProbs, Column::OldLogProbs];

pub(crate) struct KlImportanceWeighted;
impl Case for KlImportanceWeighted {
    const NAME: &'static str = "kl_importance_weighted";
    const UNITS: [f64; 2] = [4.0, 5.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = KlWeightedConfig;
    fn config(random: &mut Random) -> KlWeightedConfig {
        kl_weighted_config(random)
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: KlWeightedConfig) -> Outcome<f64> {
        let policies = POLICIES.map(|column| flat.column(column));
        Outcome::tokens([naive_kl::kl_importance_weighted(tokens(flat), policies, &config)])
    }
}

pub(crate) struct KlImportanceWeightedGradient;
impl Case for KlImportanceWeightedGradient {
    const NAME: &'static str = "kl_importance_weighted_gradient";
    const UNITS: [f64; 2] = [6.0, 6.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = KlWeightedConfig;
    fn config(random: &mut Random) -> KlWeightedConfig {
        kl_weighted_config(random)
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: KlWeightedConfig) -> Outcome<f64> {
        let policies = POLICIES.map(|column| flat.column(column));
        let grad_kl = flat.column(Column::Advantages);
        Outcome::tokens([naive_kl::kl_importance_weighted_gradient(tokens(flat), policies, grad_kl, &config)])
    }
}

crate::case::tests! {
    kl_importance_weighted: KlImportanceWeighted,
    kl_importance_weighted_gradient: KlImportanceWeightedGradient,
    row_means: RowMeans,
    row_normalize: RowNormalize,
    quantile: Quantile,
    effective_sample_size: EffectiveSampleSize,
    variance_proxy: VarianceProxy,
}
