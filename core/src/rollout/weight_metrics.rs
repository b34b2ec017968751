use crate::{
    entries::known,
    error::{Error, Result},
    layout::{Batch, Row},
    math::{clamp, exp, ln, sqrt},
    real::Real,
    reduce::{count, fold_row, Sum},
    rollout::{weights::MeanWeight, BatchNormalize, RolloutConfig, RolloutInput, RolloutLevel, WeightBound},
    simd::multiversion,
    statistics::{Divisor, Extremes, Moments, Spread},
};

/// The distribution of a batch's importance weights, before batch normalisation.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RolloutWeightMetrics {
    /// Mean weight over tokens.
    pub mean: f64,
    /// Standard deviation (divided by `n`) over tokens, the weights clamped to `[0, U]`; 0 for one token.
    pub std: f64,
    /// The largest of the applied weights at token level, of the raw ones at the other levels.
    pub max: f64,
    /// The smallest, likewise.
    pub min: f64,
    /// Effective sample size as a share of the sample: `(Σ ω)² / (N Σ ω²)`; 0 if every weight is 0.
    pub eff_sample_size: f64,
    /// Share of raw weights above the band.
    pub ratio_fraction_high: f64,
    /// Share of raw weights below the band.
    pub ratio_fraction_low: f64,
    /// Mean over sequences of their mean weight; a sequence without kept tokens counts 0, here and below.
    pub seq_mean: f64,
    /// Their standard deviation (divided by `n − 1`); 0 for one sequence.
    pub seq_std: f64,
    /// The largest of them.
    pub seq_max: f64,
    /// The smallest of them.
    pub seq_min: f64,
    /// Their largest distance from 1.
    pub seq_max_deviation: f64,
    /// Share of sequences whose mean raw weight is above the band.
    pub seq_fraction_high: f64,
    /// Share of sequences whose mean raw weight is below the band.
    pub seq_fraction_low: f64,
    /// Share of tokens outside the band; only with [`WeightBound::Zero`].
    pub oob_ratio: Option<f64>,
    /// The divisor of the weights; only with batch normalisation.
    pub batch_norm_factor: Option<f64>,
}

impl RolloutWeightMetrics {
    /// The keys as verl 0.9.1 logs them.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        known([
            ("rollout_corr/rollout_is_mean", Some(self.mean)),
            ("rollout_corr/rollout_is_std", Some(self.std)),
            ("rollout_corr/rollout_is_max", Some(self.max)),
            ("rollout_corr/rollout_is_min", Some(self.min)),
            ("rollout_corr/rollout_is_eff_sample_size", Some(self.eff_sample_size)),
            ("rollout_corr/rollout_is_ratio_fraction_high", Some(self.ratio_fraction_high)),
            ("rollout_corr/rollout_is_ratio_fraction_low", Some(self.ratio_fraction_low)),
            ("rollout_corr/rollout_is_seq_mean", Some(self.seq_mean)),
            ("rollout_corr/rollout_is_seq_std", Some(self.seq_std)),
            ("rollout_corr/rollout_is_seq_max", Some(self.seq_max)),
            ("rollout_corr/rollout_is_seq_min", Some(self.seq_min)),
            ("rollout_corr/rollout_is_seq_max_deviation", Some(self.seq_max_deviation)),
            ("rollout_corr/rollout_is_seq_fraction_high", Some(self.seq_fraction_high)),
            ("rollout_corr/rollout_is_seq_fraction_low", Some(self.seq_fraction_low)),
            ("rollout_corr/rollout_is_oob_ratio", self.oob_ratio),
            ("rollout_corr/rollout_is_batch_norm_factor", self.batch_norm_factor),
        ])
    }
}

/// Statistics of the weights of [`rollout_weights`](crate::rollout::rollout_weights), under verl's keys.
///
/// ```text
/// w raw weight, ω = w within bounds, U and L its band (L = 1/U where only U is given), ω̃ = clip(ω, 0, U)
/// mean = mean ω      std = √max(mean ω̃² − (mean ω̃)², 0)      eff_sample_size = 1 / mean((ω̃ / (mean ω̃ + 1e-8))²)
/// max, min: of ω at token level; e^{min(max_i Σδ, 20)}, e^{min_i Σδ} at the others, un-truncated
/// ```
///
/// All are computed before batch normalisation. Shares compare raw weights with the band, at sequence level their logs.
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens counts as weight 0 in the means over
/// sequences, and as Σδ = 0 in the extremes and shares at sequence level.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] as for the weights;
/// [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** verl 0.9.1 `compute_is_metrics`; equal with
/// [`Divisor::CountPlusEpsilon`](crate::Divisor::CountPlusEpsilon). It divides by zero if every weight is 0, and
/// computes its shares in single precision.
///
/// # Example
///
/// ```
/// use tokenwise::{math, rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RolloutInput {
///     old_log_probs: &[-1.0, f64::NAN, math::ln(4.0)],
///     rollout_log_probs: &[-1.0, f64::NAN, 0.0],
/// };
/// let metrics = rollout_weight_metrics(&batch, input, &RolloutConfig::default())?;
/// assert_eq!((metrics.mean, metrics.max, metrics.ratio_fraction_high), (1.5, 2.0, 0.5));
/// assert_eq!(metrics.entries().next(), Some(("rollout_corr/rollout_is_mean", 1.5)));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn rollout_weight_metrics<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &RolloutConfig,
) -> Result<RolloutWeightMetrics> {
    input.check(batch)?;
    config.check::<R>()?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    Ok(metrics(batch, input, config))
}

const SUMS: usize = 6;

/// Σ ω, Σ ω̃, Σ ω̃², Σ w, and how many raw weights are above and below the band.
#[inline(always)]
fn row_sums<R: Real>(
    row: &Row<'_>,
    input: RolloutInput<'_, R>,
    config: &RolloutConfig,
    log_ratio: Option<f64>,
) -> [f64; SUMS] {
    let (lower, upper) = config.bound.band();
    let terms = |raw: R| {
        let applied = config.bound.apply(raw);
        let held = clamp(applied, R::zero(), R::narrow(upper)).widen();
        let (high, low) = (raw > R::narrow(upper), raw < R::narrow(lower));
        ([], [applied.widen(), held, held * held, raw.widen(), count(high), count(low)])
    };
    match log_ratio {
        None => fold_row(row, [input.old_log_probs, input.rollout_log_probs], [], |[old, rollout]| {
            terms(config.ratio(config.log_ratio(old, rollout)))
        }),
        Some(log_ratio) => {
            let raw = R::narrow(config.ratio(log_ratio));
            fold_row(row, [], [], |[]| terms(raw))
        }
    }
}

#[multiversion]
fn metrics<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>, config: &RolloutConfig) -> RolloutWeightMetrics {
    let (lower, upper) = config.bound.band();
    let (log_lower, log_upper) = (ln(lower), ln(upper));
    let mut totals = [Sum::default(); SUMS];
    let mut factor = MeanWeight::default();
    let (mut extremes, mut logs, mut means) = (Extremes::NONE, Extremes::NONE, Extremes::NONE);
    let (mut sequences, mut mean_sum, mut deviation) = (Moments::default(), Sum::default(), Extremes::NONE);
    let [mut log_high, mut log_low, mut seq_high, mut seq_low] = [0.0; 4];
    for row in batch.token_rows() {
        let log_ratio = (config.level != RolloutLevel::Token).then(|| config.sequence_log_ratio(&row, input));
        let sums = row_sums(&row, input, config, log_ratio);
        Sum::add_each(&mut totals, &sums);
        match log_ratio {
            Some(log_ratio) => {
                logs.add(log_ratio);
                log_high += count(log_ratio > log_upper);
                log_low += count(log_ratio < log_lower);
            }
            None => {
                let pairs = row.of(input.old_log_probs).iter().zip(row.of(input.rollout_log_probs));
                for ((&old, &rollout), _) in pairs.zip(row.keep).filter(|(_, &keep)| keep) {
                    extremes.add(config.bound.apply(config.ratio(config.log_ratio(old, rollout))).widen());
                }
            }
        }
        let kept = row.kept();
        factor.add(sums[0], kept, config.divisor);
        let mean_of = |sum: f64| if kept == 0 { 0.0 } else { sum / config.divisor.of(kept as f64) };
        let (mean, raw_mean) = (mean_of(sums[0]), mean_of(sums[3]));
        sequences.merge(&Moments { count: 1, mean, m2: 0.0 });
        mean_sum.add(mean);
        means.add(mean);
        deviation.add(if mean < 1.0 { 1.0 - mean } else { mean - 1.0 });
        seq_high += count(raw_mean > upper);
        seq_low += count(raw_mean < lower);
    }
    let [sum, held, squares, _, high, low] = Sum::values(&totals);
    let (n, rows) = (config.divisor.of(batch.kept() as f64), batch.sequences() as f64);
    let (held_mean, mean_square) = (held / n, squares / n);
    let variance = mean_square - held_mean * held_mean;
    let token = config.level == RolloutLevel::Token;
    let mean_weight = factor.value(batch, config);
    RolloutWeightMetrics {
        mean: sum / n,
        std: if batch.kept() > 1 { sqrt(if variance < 0.0 { 0.0 } else { variance }) } else { 0.0 },
        max: if token { extremes.max } else { exp(clamp(logs.max, f64::NEG_INFINITY, 20.0)) },
        min: if token { extremes.min } else { exp(logs.min) },
        eff_sample_size: if mean_square == 0.0 { 0.0 } else { (held_mean + 1e-8) * (held_mean + 1e-8) / mean_square },
        ratio_fraction_high: if token { high / n } else { log_high / rows },
        ratio_fraction_low: if token { low / n } else { log_low / rows },
        seq_mean: mean_sum.value() / rows,
        seq_std: sequences.variance(Spread::Sample, Divisor::Count).map_or(0.0, sqrt),
        seq_max: means.max,
        seq_min: means.min,
        seq_max_deviation: deviation.max,
        seq_fraction_high: seq_high / rows,
        seq_fraction_low: seq_low / rows,
        oob_ratio: matches!(config.bound, WeightBound::Zero { .. }).then(|| (high + low) / n),
        batch_norm_factor: (config.normalize != BatchNormalize::Off).then_some(if mean_weight > 1e-8 {
            mean_weight
        } else {
            1.0
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::fixture::{batch, input, near};

    #[test]
    fn the_numbers_of_verl() {
        let config = RolloutConfig {
            bound: WeightBound::Truncate { upper: 1.1 },
            divisor: Divisor::CountPlusEpsilon,
            ..Default::default()
        };
        let got = rollout_weight_metrics(&batch(), input(), &config).unwrap();
        near(got.mean, 1.008759);
        near(got.std, 0.068256);
        near(got.eff_sample_size, 0.995443);
        near(got.ratio_fraction_high, 0.2);
        near(got.ratio_fraction_low, 0.2);
        near(got.seq_mean, 1.001993);
        near(got.seq_std, 0.031767);
        near(got.seq_fraction_high, 0.25);
        assert_eq!(got.entries().count(), 14);

        let config = RolloutConfig { bound: WeightBound::Zero { lower: 0.92, upper: 1.1 }, ..config };
        let got = rollout_weight_metrics(&batch(), input(), &config).unwrap();
        near(got.mean, 0.607792);
        near(got.std, 0.497089);
        near(got.eff_sample_size, 0.599199);
        near(got.oob_ratio.unwrap(), 0.4);

        let config = RolloutConfig {
            level: RolloutLevel::Sequence,
            bound: WeightBound::Truncate { upper: 1.2 },
            normalize: BatchNormalize::ByLevel,
            ..config
        };
        let got = rollout_weight_metrics(&batch(), input(), &config).unwrap();
        near(got.batch_norm_factor.unwrap(), 1.050461);
        near(got.max, 1.521961);
        near(got.min, 0.923116);
        near(got.mean, 1.077409);
    }
}
