use crate::{
    entries::known,
    error::{Error, Result},
    layout::{Batch, Row},
    math::{clamp, exp, ln, sqrt},
    real::Real,
    reduce::{count, fold_row, Sum},
    rollout::{BatchNormalize, RolloutConfig, RolloutInput, RolloutLevel, WeightBound},
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

/// What a sequence adds to the metrics.
#[derive(Clone, Copy)]
pub(crate) struct WeightRow {
    /// Σ ω, Σ ω̃, Σ ω̃², Σ w, and how many raw weights are above and below the band.
    pub(crate) sums: [f64; SUMS],
    /// Its log-ratio, at the levels of sequences.
    pub(crate) log_ratio: Option<f64>,
    /// The extremes of the applied weights, at token level.
    pub(crate) applied: Extremes,
    /// The mean of the applied weights; 0 without kept tokens.
    pub(crate) mean: f64,
    /// How many of it: log-ratios above and below the band, mean raw weights above and below it.
    pub(crate) outside: [bool; 4],
    pub(crate) kept: usize,
}

impl Default for WeightRow {
    fn default() -> Self {
        let (sums, applied, outside) = ([0.0; SUMS], Extremes::NONE, [false; 4]);
        Self { sums, log_ratio: None, applied, mean: 0.0, outside, kept: 0 }
    }
}

/// The band of a config and its logs, computed once.
#[derive(Clone, Copy)]
pub(crate) struct Band {
    lower: f64,
    upper: f64,
    log_lower: f64,
    log_upper: f64,
}

impl Band {
    pub(crate) fn of(config: &RolloutConfig) -> Self {
        let (lower, upper) = config.bound.band();
        Self { lower, upper, log_lower: ln(lower), log_upper: ln(upper) }
    }
}

#[inline(always)]
pub(crate) fn weight_row<R: Real>(
    row: &Row<'_>,
    input: RolloutInput<'_, R>,
    config: &RolloutConfig,
    band: Band,
) -> WeightRow {
    let Band { lower, upper, log_lower, log_upper } = band;
    let log_ratio = (config.level != RolloutLevel::Token).then(|| config.sequence_log_ratio(row, input));
    let terms = |raw: R| {
        let applied = config.bound.apply(raw);
        let held = clamp(applied, R::zero(), R::narrow(upper)).widen();
        let (high, low) = (raw > R::narrow(upper), raw < R::narrow(lower));
        ([], [applied.widen(), held, held * held, raw.widen(), count(high), count(low)])
    };
    let mut applied = Extremes::NONE;
    let sums: [f64; SUMS] = match log_ratio {
        None => {
            let pairs = row.of(input.old_log_probs).iter().zip(row.of(input.rollout_log_probs));
            for ((&old, &rollout), _) in pairs.zip(row.keep).filter(|(_, &keep)| keep) {
                applied.add(config.bound.apply(config.ratio(config.log_ratio(old, rollout))).widen());
            }
            fold_row(row, [input.old_log_probs, input.rollout_log_probs], [], |[old, rollout]| {
                terms(config.ratio(config.log_ratio(old, rollout)))
            })
        }
        Some(log_ratio) => {
            let raw = R::narrow(config.ratio(log_ratio));
            fold_row(row, [], [], |[]| terms(raw))
        }
    };
    let kept = row.kept();
    let mean_of = |sum: f64| if kept == 0 { 0.0 } else { sum / config.divisor.of(kept as f64) };
    let (mean, raw_mean) = (mean_of(sums[0]), mean_of(sums[3]));
    let of_logs = log_ratio.map_or([false; 2], |log_ratio| [log_ratio > log_upper, log_ratio < log_lower]);
    let outside = [of_logs[0], of_logs[1], raw_mean > upper, raw_mean < lower];
    WeightRow { sums, log_ratio, applied, mean, outside, kept }
}

/// The distance of a mean weight from 1.
#[inline(always)]
pub(crate) fn deviation_from_one(mean: f64) -> f64 {
    if mean < 1.0 {
        1.0 - mean
    } else {
        mean - 1.0
    }
}

/// What all sequences come to.
pub(crate) struct WeightTotals {
    pub(crate) tokens: u64,
    pub(crate) sequences: u64,
    /// Those with kept tokens.
    pub(crate) kept_sequences: u64,
    /// Of [`WeightRow::sums`].
    pub(crate) sums: [f64; SUMS],
    /// Of [`WeightRow::mean`].
    pub(crate) mean_sum: f64,
    pub(crate) means: Moments,
    pub(crate) applied: Extremes,
    pub(crate) logs: Extremes,
    pub(crate) mean_extremes: Extremes,
    pub(crate) deviation: f64,
    /// Of [`WeightRow::outside`].
    pub(crate) outside: [f64; 4],
}

impl WeightTotals {
    /// The mean that [`BatchNormalize`] divides by.
    pub(crate) fn mean_weight(&self, config: &RolloutConfig) -> f64 {
        match (config.normalize, config.level) {
            (BatchNormalize::ByLevel, RolloutLevel::Sequence | RolloutLevel::Geometric) => {
                self.mean_sum / self.kept_sequences as f64
            }
            _ => self.sums[0] / config.divisor.of(self.tokens as f64),
        }
    }

    pub(crate) fn metrics(&self, config: &RolloutConfig) -> RolloutWeightMetrics {
        let [sum, held, squares, _, high, low] = self.sums;
        let [log_high, log_low, seq_high, seq_low] = self.outside;
        let (n, rows) = (config.divisor.of(self.tokens as f64), self.sequences as f64);
        let (held_mean, mean_square) = (held / n, squares / n);
        let variance = mean_square - held_mean * held_mean;
        let token = config.level == RolloutLevel::Token;
        let mean_weight = self.mean_weight(config);
        RolloutWeightMetrics {
            mean: sum / n,
            std: if self.tokens > 1 { sqrt(if variance < 0.0 { 0.0 } else { variance }) } else { 0.0 },
            max: if token { self.applied.max } else { exp(clamp(self.logs.max, f64::NEG_INFINITY, 20.0)) },
            min: if token { self.applied.min } else { exp(self.logs.min) },
            eff_sample_size: if mean_square == 0.0 {
                0.0
            } else {
                (held_mean + 1e-8) * (held_mean + 1e-8) / mean_square
            },
            ratio_fraction_high: if token { high / n } else { log_high / rows },
            ratio_fraction_low: if token { low / n } else { log_low / rows },
            seq_mean: self.mean_sum / rows,
            seq_std: self.means.variance(Spread::Sample, Divisor::Count).map_or(0.0, sqrt),
            seq_max: self.mean_extremes.max,
            seq_min: self.mean_extremes.min,
            seq_max_deviation: self.deviation,
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
}

#[multiversion]
fn metrics<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>, config: &RolloutConfig) -> RolloutWeightMetrics {
    let band = Band::of(config);
    let (mut totals, mut mean_sum, mut kept_sequences) = ([Sum::default(); SUMS], Sum::default(), 0);
    let (mut applied, mut logs, mut mean_extremes) = (Extremes::NONE, Extremes::NONE, Extremes::NONE);
    let (mut means, mut deviation, mut outside) = (Moments::default(), Extremes::NONE, [0.0; 4]);
    for row in batch.token_rows() {
        let found = weight_row(&row, input, config, band);
        Sum::add_each(&mut totals, &found.sums);
        if let Some(log_ratio) = found.log_ratio {
            logs.add(log_ratio);
        }
        applied.merge(found.applied);
        kept_sequences += u64::from(found.kept > 0);
        means.merge(&Moments { count: 1, mean: found.mean, m2: 0.0 });
        mean_sum.add(found.mean);
        mean_extremes.add(found.mean);
        deviation.add(deviation_from_one(found.mean));
        outside.iter_mut().zip(found.outside).for_each(|(total, yes)| *total += count(yes));
    }
    let totals = WeightTotals {
        tokens: batch.kept() as u64,
        sequences: batch.sequences() as u64,
        kept_sequences,
        sums: Sum::values(&totals),
        mean_sum: mean_sum.value(),
        means,
        applied,
        logs,
        mean_extremes,
        deviation: deviation.max,
        outside,
    };
    totals.metrics(config)
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
