//! Stage 6 again: numbers of sequences, order and noise; and stage 2's weighted KL.

use tokenwise::{
    divergence::{KlWeight, KlWeightedConfig, KlWeightedGradientInput, KlWeightedInput},
    metric::*,
    Divisor, Result,
};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::{divergence as naive_kl, metric as naive},
};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
    divergence::kl_config,
    reward::DIVISORS,
};

pub(crate) struct RowSums;
impl Case for RowSums {
    const FORMULA: Formula = Formula::RowSums;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        row_sums(&flat.batch(), flat.column(Column::Values), &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::sequences([naive::row_sums(tokens(flat), flat.column(Column::Values))])
    }
}

pub(crate) struct RowMeans;
impl Case for RowMeans {
    const FORMULA: Formula = Formula::RowMeans;
    const SEQUENCES_ALONE: bool = true;
    type Config = Divisor;
    fn config(random: &mut Random) -> Divisor {
        random.pick(&DIVISORS)
    }
    fn run<R: Number>(flat: &Flat<R>, divisor: Divisor) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        row_means(&flat.batch(), flat.column(Column::Values), divisor, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, divisor: Divisor) -> Outcome<f64> {
        Outcome::sequences([naive::row_means(tokens(flat), flat.column(Column::Values), divisor)])
    }
}

pub(crate) struct RowNormalize;
impl Case for RowNormalize {
    const FORMULA: Formula = Formula::RowNormalize;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[1e-8, 0.5])
    }
    fn run<R: Number>(flat: &Flat<R>, floor: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        row_normalize(&flat.batch(), flat.column(Column::Values), floor, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, floor: f64) -> Outcome<f64> {
        Outcome::tokens([naive::row_normalize(tokens(flat), flat.column(Column::Values), floor)])
    }
}

pub(crate) struct Quantile;
impl Case for Quantile {
    const FORMULA: Formula = Formula::Quantile;
    const SEQUENCES_ALONE: bool = false;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 0.1, 0.5, 0.9, 1.0])
    }
    fn run<R: Number>(flat: &Flat<R>, level: f64) -> Result<Outcome<R>> {
        Ok(Outcome::numbers([quantile(&flat.batch(), flat.column(Column::Values), level)?]))
    }
    fn naive(flat: &Flat<f64>, level: f64) -> Outcome<f64> {
        Outcome::numbers([naive::quantile(tokens(flat), flat.column(Column::Values), level)])
    }
}

pub(crate) struct EffectiveSampleSize;
impl Case for EffectiveSampleSize {
    const FORMULA: Formula = Formula::EffectiveSampleSize;
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        Ok(Outcome::numbers([effective_sample_size(&flat.batch(), flat.column(Column::Weights))?]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::numbers([naive::effective_sample_size(tokens(flat), flat.column(Column::Weights))])
    }
}

pub(crate) struct VarianceProxy;
impl Case for VarianceProxy {
    const FORMULA: Formula = Formula::VarianceProxy;
    const SEQUENCES_ALONE: bool = false;
    type Config = (bool, f64, Divisor);
    fn config(random: &mut Random) -> Self::Config {
        (random.pick(&[false, true]), random.pick(&[0.0, 0.7]), random.pick(&DIVISORS))
    }
    fn run<R: Number>(flat: &Flat<R>, (weighed, norm, divisor): Self::Config) -> Result<Outcome<R>> {
        let input = VarianceProxyInput {
            old_log_probs: flat.column(Column::OldLogProbs),
            sum_pi_squared: flat.column(Column::Weights),
            advantages: flat.column(Column::Advantages),
            weights: weighed.then(|| flat.column(Column::Values)),
        };
        let proxy = variance_proxy(&flat.batch(), input, norm, divisor)?;
        Ok(Outcome::numbers(proxy.entries().map(|(_, value)| value)))
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
    const FORMULA: Formula = Formula::KlImportanceWeighted;
    const SEQUENCES_ALONE: bool = true;
    type Config = KlWeightedConfig;
    fn config(random: &mut Random) -> KlWeightedConfig {
        kl_weighted_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: KlWeightedConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        let [log_probs, ref_log_probs, old_log_probs] = POLICIES.map(|column| flat.column(column));
        let input = KlWeightedInput { log_probs, ref_log_probs, old_log_probs };
        tokenwise::divergence::kl_importance_weighted(&flat.batch(), input, &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: KlWeightedConfig) -> Outcome<f64> {
        let policies = POLICIES.map(|column| flat.column(column));
        Outcome::tokens([naive_kl::kl_importance_weighted(tokens(flat), policies, &config)])
    }
}

pub(crate) struct KlImportanceWeightedGradient;
impl Case for KlImportanceWeightedGradient {
    const FORMULA: Formula = Formula::KlImportanceWeightedGradient;
    const SEQUENCES_ALONE: bool = true;
    type Config = KlWeightedConfig;
    fn config(random: &mut Random) -> KlWeightedConfig {
        kl_weighted_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: KlWeightedConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        let [log_probs, ref_log_probs, old_log_probs] = POLICIES.map(|column| flat.column(column));
        let grad_kl = flat.column(Column::Advantages);
        let input = KlWeightedGradientInput { log_probs, ref_log_probs, old_log_probs, grad_kl };
        tokenwise::divergence::kl_importance_weighted_gradient(&flat.batch(), input, &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: KlWeightedConfig) -> Outcome<f64> {
        let policies = POLICIES.map(|column| flat.column(column));
        let grad_kl = flat.column(Column::Advantages);
        Outcome::tokens([naive_kl::kl_importance_weighted_gradient(tokens(flat), policies, grad_kl, &config)])
    }
}
