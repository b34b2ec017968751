//! Stage 6: the numbers a trainer logs.

use tokenwise::{metric::*, MeanConfig, Spread};
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{by_name, tokens, Case, Outcome},
    errors::domains::*,
    loss::dual_clip,
    naive::metric as naive,
    reward::DIVISORS,
};

pub(crate) const SPREADS: [Spread; 2] = [Spread::Population, Spread::Sample];

pub(crate) struct Mean;
impl Case for Mean {
    const NAME: &'static str = "mean";
    const UNITS: [f64; 2] = [0.8, 0.0];
    const DOMAINS: &'static [Row] = &[needs_one()];
    const SEQUENCES_ALONE: bool = false;
    type Config = MeanConfig;
    fn config(random: &mut Random) -> MeanConfig {
        MeanConfig { divisor: random.pick(&DIVISORS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, MeanConfig { divisor }: MeanConfig) -> Outcome<f64> {
        Outcome::numbers([naive::mean(tokens(flat), flat.column(Column::Values), divisor)])
    }
}

pub(crate) struct Variance;
impl Case for Variance {
    const NAME: &'static str = "variance";
    const UNITS: [f64; 2] = [2.0, 3e-9];
    const DOMAINS: &'static [Row] = &[whitens()];
    const SEQUENCES_ALONE: bool = false;
    type Config = VarianceConfig;
    fn config(random: &mut Random) -> Self::Config {
        VarianceConfig { spread: random.pick(&SPREADS), divisor: random.pick(&DIVISORS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, VarianceConfig { spread, divisor }: Self::Config) -> Outcome<f64> {
        Outcome::numbers([naive::variance(tokens(flat), flat.column(Column::Values), spread, divisor)])
    }
}

pub(crate) struct Correlation;
impl Case for Correlation {
    const NAME: &'static str = "correlation";
    const UNITS: [f64; 2] = [8.0, 2e-8];
    const DOMAINS: &'static [Row] =
        &[Row { all_dropped: too_few("correlation", 0), one_kept: too_few("correlation", 1), ..any() }];
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        let (x, y) = (flat.column(Column::LogProbs), flat.column(Column::OldLogProbs));
        Outcome::numbers([naive::correlation(tokens(flat), x, y)])
    }
}

pub(crate) struct ExplainedVariance;
impl Case for ExplainedVariance {
    const NAME: &'static str = "explained_variance";
    const UNITS: [f64; 2] = [20.0, 6e-8];
    const DOMAINS: &'static [Row] =
        &[Row { one_kept: too_few("explained_variance", 1), ..needs_one() }.numbers(EPSILON)];
    const SEQUENCES_ALONE: bool = false;
    type Config = ExplainedVarianceConfig;
    fn config(random: &mut Random) -> Self::Config {
        ExplainedVarianceConfig { epsilon: random.pick(&[1e-5, 1e-2]), spread: random.pick(&SPREADS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (values, returns) = (flat.column(Column::Values), flat.column(Column::Returns));
        Outcome::numbers([naive::explained_variance(tokens(flat), values, returns, &config)])
    }
}

pub(crate) struct KlMeans;
impl Case for KlMeans {
    const NAME: &'static str = "kl_means";
    const UNITS: [f64; 2] = [3.0, 2.0];
    const DOMAINS: &'static [Row] = &[needs_one()];
    const SEQUENCES_ALONE: bool = false;
    type Config = MeanConfig;
    fn config(random: &mut Random) -> MeanConfig {
        MeanConfig { divisor: random.pick(&DIVISORS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, MeanConfig { divisor }: MeanConfig) -> Outcome<f64> {
        let (log_probs, ref_log_probs) = (flat.column(Column::LogProbs), flat.column(Column::RefLogProbs));
        let means = naive::kl_means(tokens(flat), log_probs, ref_log_probs, divisor);
        Outcome::numbers([means.k1, means.abs, means.k2, means.k3])
    }
}

pub(crate) struct ClipFractions;
impl Case for ClipFractions {
    const NAME: &'static str = "clip_fractions";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[
        key("clip_low", NOT_NEGATIVE),
        key("clip_high", NOT_NEGATIVE),
        inside("dual_clip.both_signs", "dual_clip", ABOVE_1),
    ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = ClipConfig;
    fn config(random: &mut Random) -> ClipConfig {
        let dual_clip = dual_clip(random);
        let (clip_low, clip_high) = (random.pick(&[0.25, 0.0625]), random.pick(&[0.25, 0.3125]));
        ClipConfig { clip_low, clip_high, dual_clip, divisor: random.pick(&DIVISORS) }
    }
    by_name!();
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
    const NAME: &'static str = "analysis";
    const UNITS: [f64; 2] = [20.0, 0.6];
    const DOMAINS: &'static [Row] = &[needs_one()];
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        let AnalysisInput { old_log_probs, advantages, rewards } = analysis_input(flat);
        Outcome::numbers(naive::analysis(tokens(flat), old_log_probs, advantages, rewards))
    }
}

crate::case::tests! {
    mean: Mean {
        nan_stays_in_sums(&[(Column::Values, &[0])]);
    },
    variance: Variance {
        nan_stays_in_sums(&[(Column::Values, &[0])]);
    },
    correlation: Correlation {
        nan_stays_in_sums(&[(Column::LogProbs, &[0])]);
    },
    explained_variance: ExplainedVariance {
        nan_stays_in_sums(&[(Column::Values, &[0])]);
    },
    kl_means: KlMeans {
        nan_stays_in_sums(&[(Column::LogProbs, &[0, 1, 2, 3])]);
    },
    clip_fractions: ClipFractions,
    analysis: Analysis {
        nan_stays_in_sums(&[(Column::OldLogProbs, &[0, 1, 2, 3]), (Column::Advantages, &[1, 2, 3]), (Column::Rewards, &[4])]);
    },
}
