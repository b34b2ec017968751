//! Stage 6: the numbers a trainer logs.

use tokenwise::{divergence::KlInput, metric::*, Divisor, Result, Spread};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::metric as naive,
};

use crate::{
    case::{tokens, Case, Outcome},
    loss::dual_clip,
    reward::DIVISORS,
};

pub(crate) const SPREADS: [Spread; 2] = [Spread::Population, Spread::Sample];

pub(crate) struct Mean;
impl Case for Mean {
    const FORMULA: Formula = Formula::Mean;
    const SEQUENCES_ALONE: bool = false;
    type Config = Divisor;
    fn config(random: &mut Random) -> Divisor {
        random.pick(&DIVISORS)
    }
    fn run<R: Number>(flat: &Flat<R>, divisor: Divisor) -> Result<Outcome<R>> {
        Ok(Outcome::numbers([mean(&flat.batch(), flat.column(Column::Values), divisor)?]))
    }
    fn naive(flat: &Flat<f64>, divisor: Divisor) -> Outcome<f64> {
        Outcome::numbers([naive::mean(tokens(flat), flat.column(Column::Values), divisor)])
    }
}

pub(crate) struct Variance;
impl Case for Variance {
    const FORMULA: Formula = Formula::Variance;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Spread, Divisor);
    fn config(random: &mut Random) -> Self::Config {
        (random.pick(&SPREADS), random.pick(&DIVISORS))
    }
    fn run<R: Number>(flat: &Flat<R>, (spread, divisor): Self::Config) -> Result<Outcome<R>> {
        Ok(Outcome::numbers([variance(&flat.batch(), flat.column(Column::Values), spread, divisor)?]))
    }
    fn naive(flat: &Flat<f64>, (spread, divisor): Self::Config) -> Outcome<f64> {
        Outcome::numbers([naive::variance(tokens(flat), flat.column(Column::Values), spread, divisor)])
    }
}

pub(crate) struct Correlation;
impl Case for Correlation {
    const FORMULA: Formula = Formula::Correlation;
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let input = PairInput { x: flat.column(Column::LogProbs), y: flat.column(Column::OldLogProbs) };
        Ok(Outcome::numbers([correlation(&flat.batch(), input)?]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        let (x, y) = (flat.column(Column::LogProbs), flat.column(Column::OldLogProbs));
        Outcome::numbers([naive::correlation(tokens(flat), x, y)])
    }
}

pub(crate) struct ExplainedVariance;
impl Case for ExplainedVariance {
    const FORMULA: Formula = Formula::ExplainedVariance;
    const SEQUENCES_ALONE: bool = false;
    type Config = ExplainedVarianceConfig;
    fn config(random: &mut Random) -> Self::Config {
        ExplainedVarianceConfig { epsilon: random.pick(&[1e-5, 1e-2]), spread: random.pick(&SPREADS) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let input =
            ExplainedVarianceInput { values: flat.column(Column::Values), returns: flat.column(Column::Returns) };
        Ok(Outcome::numbers([explained_variance(&flat.batch(), input, &config)?]))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (values, returns) = (flat.column(Column::Values), flat.column(Column::Returns));
        Outcome::numbers([naive::explained_variance(tokens(flat), values, returns, &config)])
    }
}

pub(crate) struct KlMeans;
impl Case for KlMeans {
    const FORMULA: Formula = Formula::KlMeans;
    const SEQUENCES_ALONE: bool = false;
    type Config = Divisor;
    fn config(random: &mut Random) -> Divisor {
        random.pick(&DIVISORS)
    }
    fn run<R: Number>(flat: &Flat<R>, divisor: Divisor) -> Result<Outcome<R>> {
        let (log_probs, ref_log_probs) = (flat.column(Column::LogProbs), flat.column(Column::RefLogProbs));
        let means = kl_means(&flat.batch(), KlInput { log_probs, ref_log_probs }, divisor)?;
        Ok(Outcome::numbers([means.k1, means.abs, means.k2, means.k3]))
    }
    fn naive(flat: &Flat<f64>, divisor: Divisor) -> Outcome<f64> {
        let (log_probs, ref_log_probs) = (flat.column(Column::LogProbs), flat.column(Column::RefLogProbs));
        let means = naive::kl_means(tokens(flat), log_probs, ref_log_probs, divisor);
        Outcome::numbers([means.k1, means.abs, means.k2, means.k3])
    }
}

pub(crate) struct ClipFractions;
impl Case for ClipFractions {
    const FORMULA: Formula = Formula::ClipFractions;
    const SEQUENCES_ALONE: bool = false;
    type Config = ClipConfig;
    fn config(random: &mut Random) -> ClipConfig {
        let dual_clip = dual_clip(random);
        let (clip_low, clip_high) = (random.pick(&[0.25, 0.0625]), random.pick(&[0.25, 0.3125]));
        ClipConfig { clip_low, clip_high, dual_clip, divisor: random.pick(&DIVISORS) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: ClipConfig) -> Result<Outcome<R>> {
        let input = RatioInput {
            log_probs: flat.column(Column::LogProbs),
            old_log_probs: flat.column(Column::OldLogProbs),
            advantages: flat.column(Column::Advantages),
        };
        let shares = clip_fractions(&flat.batch(), input, &config)?;
        Ok(Outcome::numbers([shares.clipped, shares.low, shares.high, shares.dual]))
    }
    fn naive(flat: &Flat<f64>, config: ClipConfig) -> Outcome<f64> {
        let (new, old) = (flat.column(Column::LogProbs), flat.column(Column::OldLogProbs));
        let shares = naive::clip_fractions(tokens(flat), new, old, flat.column(Column::Advantages), &config);
        Outcome::numbers([shares.clipped, shares.low, shares.high, shares.dual])
    }
}

pub(crate) fn analysis_input<R: Number>(flat: &Flat<R>) -> AnalysisInput<'_, R> {
    AnalysisInput {
        old_log_probs: flat.column(Column::OldLogProbs),
        advantages: flat.column(Column::Advantages),
        rewards: flat.column(Column::Rewards),
    }
}

pub(crate) struct Analysis;
impl Case for Analysis {
    const FORMULA: Formula = Formula::Analysis;
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let result = analysis(&flat.batch(), analysis_input(flat))?;
        Ok(Outcome::numbers(result.entries().map(|(_, value)| value)))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        let AnalysisInput { old_log_probs, advantages, rewards } = analysis_input(flat);
        Outcome::numbers(naive::analysis(tokens(flat), old_log_probs, advantages, rewards))
    }
}
