//! Importance weights of trainer over sampler.

use tokenwise::{
    math::{exp, ln, sqrt},
    rollout::{self, BatchNormalize, LogBound, RolloutConfig, RolloutLevel, RolloutWeightMetrics, WeightBound},
};

use super::{count, deviation, extremes, input, rows, total, RolloutColumns, PAIR, ROW, TWO};
use crate::{
    batch::GpuBatch,
    call::{batch, numbers, runners, Answer, Request, Runner},
    column::Column,
    error::GpuError,
    fold::Fold,
    metric::two_tokens,
    recording::{Pending, Record, Recording},
    rows::kept_per_row,
    token::{bits, kernel, token, whole, Setting, Term, TokenKernel},
};

const WEIGHT_SETTINGS: &[Setting] = &[
    Setting::F32("log_bound"),
    Setting::U32("zero"),
    Setting::F32("lower"),
    Setting::F32("upper"),
    Setting::U32("geometric"),
    Setting::F32("band_lower"),
    Setting::F32("band_upper"),
];

macro_rules! weight_kernel {
    ($label:literal, $ratio:literal, $formula:literal, $inputs:expr, $outputs:expr, $terms:expr) => {
        kernel(
            $label,
            concat!(include_str!("../../shaders/rollout/weight.wgsl"), include_str!($ratio), include_str!($formula)),
            $inputs,
            $outputs,
            $terms,
            WEIGHT_SETTINGS,
        )
    };
}

const WEIGHT_TERMS: &[Term] = &[Term::Number("total"), Term::Number("of_sequences")];

const TOKEN_WEIGHTS: TokenKernel = weight_kernel!(
    "rollout/token_weights",
    "../../shaders/rollout/token_ratio.wgsl",
    "../../shaders/rollout/weights.wgsl",
    PAIR,
    &["weights"],
    WEIGHT_TERMS
);

const SEQUENCE_WEIGHTS: TokenKernel = weight_kernel!(
    "rollout/sequence_weights",
    "../../shaders/rollout/sequence_ratio.wgsl",
    "../../shaders/rollout/weights.wgsl",
    ROW,
    &["weights"],
    WEIGHT_TERMS
);

const METRIC_TERMS: &[Term] = &[
    Term::Number("applied_sum"),
    Term::Number("held"),
    Term::Number("square"),
    Term::Number("square_low"),
    Term::Count("high"),
    Term::Count("low"),
];

const TOKEN_WEIGHT_METRICS: TokenKernel = weight_kernel!(
    "rollout/token_weight_metrics",
    "../../shaders/rollout/token_ratio.wgsl",
    "../../shaders/rollout/weight_metrics.wgsl",
    PAIR,
    &["raw", "applied"],
    METRIC_TERMS
);

const SEQUENCE_WEIGHT_METRICS: TokenKernel = weight_kernel!(
    "rollout/sequence_weight_metrics",
    "../../shaders/rollout/sequence_ratio.wgsl",
    "../../shaders/rollout/weight_metrics.wgsl",
    ROW,
    &["raw", "applied"],
    METRIC_TERMS
);

const NORMALIZE: TokenKernel = kernel(
    "rollout/normalize",
    include_str!("../../shaders/rollout/normalize.wgsl"),
    &[token("weights"), whole("sums")],
    &["normalized"],
    &[],
    &[Setting::U32("term"), Setting::F32("count")],
);

/// The band of a bound: what counts as too low and too high.
fn band(bound: WeightBound) -> (f64, f64) {
    match bound {
        WeightBound::Truncate { upper } => (1.0 / upper, upper),
        WeightBound::Zero { lower, upper } | WeightBound::Clamp { lower, upper } => (lower, upper),
        _ => (0.0, f64::INFINITY),
    }
}

/// The words of [`WEIGHT_SETTINGS`].
fn weight_settings(config: &RolloutConfig) -> [u32; 7] {
    let none = f64::INFINITY;
    let (lower, upper) = match config.bound {
        WeightBound::Truncate { upper } => (-none, upper),
        WeightBound::Zero { lower, upper } | WeightBound::Clamp { lower, upper } => (lower, upper),
        _ => (-none, none),
    };
    let log_bound = match config.log_bound {
        LogBound::At(bound) => bound,
        _ => none,
    };
    let (band_lower, band_upper) = band(config.bound);
    [
        bits(log_bound),
        u32::from(matches!(config.bound, WeightBound::Zero { .. })),
        bits(lower),
        bits(upper),
        u32::from(config.level == RolloutLevel::Geometric),
        bits(band_lower),
        bits(band_upper),
    ]
}

impl Recording<'_> {
    /// Importance weights of trainer over sampler, and the factor they were divided by: the core's
    /// [`rollout_weights`](rollout::rollout_weights).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn rollout_weights(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &RolloutConfig,
    ) -> Result<(Column, Pending<f64>), GpuError> {
        input.check(batch)?;
        rollout::rollout_weights(&two_tokens()?, TWO, config, &mut [0.0; 2])?;
        let normalize = config.normalize != BatchNormalize::Off;
        if normalize {
            batch.check_some_kept()?;
        }
        let pair = self.pair(input)?;
        let settings = weight_settings(config);
        let (weights, record): (Column, Record) = if config.level == RolloutLevel::Token {
            let ([weights], record) =
                self.tokens(&TOKEN_WEIGHTS, batch, &[Some(&pair[0]), Some(&pair[1])], &settings)?;
            (weights, record)
        } else {
            let (log_ratios, counts) = (self.log_ratios(batch, &pair)?, batch.counts(self)?);
            let ([weights], record) =
                self.tokens(&SEQUENCE_WEIGHTS, batch, &[Some(&log_ratios), Some(&counts)], &settings)?;
            (weights, record)
        };
        if !normalize {
            return Ok((weights, Pending::new(|_| 1.0)));
        }
        let by_sequence = config.normalize == BatchNormalize::ByLevel && config.level != RolloutLevel::Token;
        let (term, count) = match by_sequence {
            true => (1, batch.host().kept_sequences() as f64),
            false => (0, config.divisor.of(batch.host().kept() as f64)),
        };
        let given = [Some(&weights), Some(&record.column)];
        let ([weights], _) = self.tokens(&NORMALIZE, batch, &given, &[term, bits(count)])?;
        let header = record.header;
        let factor = Pending::new(move |done| {
            let sums: [f64; 2] = done.sums(header);
            let mean = sums[term as usize] / count;
            if mean <= 1e-8 {
                1.0
            } else {
                mean
            }
        });
        Ok((weights, factor))
    }

    /// Statistics of the importance weights: the core's [`rollout_weight_metrics`](rollout::rollout_weight_metrics).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn rollout_weight_metrics(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &RolloutConfig,
    ) -> Result<Pending<RolloutWeightMetrics>, GpuError> {
        input.check(batch)?;
        rollout::rollout_weight_metrics(&two_tokens()?, TWO, config)?;
        batch.check_some_kept()?;
        let pair = self.pair(input)?;
        let settings = weight_settings(config);
        let token_level = config.level == RolloutLevel::Token;
        let (raw, applied, record, logs);
        if token_level {
            ([raw, applied], record) =
                self.tokens(&TOKEN_WEIGHT_METRICS, batch, &[Some(&pair[0]), Some(&pair[1])], &settings)?;
            logs = None;
        } else {
            let (log_ratios, counts) = (self.log_ratios(batch, &pair)?, batch.counts(self)?);
            logs = Some(self.download(&log_ratios));
            ([raw, applied], record) =
                self.tokens(&SEQUENCE_WEIGHT_METRICS, batch, &[Some(&log_ratios), Some(&counts)], &settings)?;
        }
        let sums = [self.folded(Fold::Sum, batch, &applied)?, self.folded(Fold::Sum, batch, &raw)?];
        let ends = [self.folded(Fold::Max, batch, &applied)?, self.folded(Fold::Min, batch, &applied)?];
        let (kept, all, with_kept) =
            (kept_per_row(batch.host()), batch.host().kept(), batch.host().kept_sequences() as f64);
        let (config, header) = (*config, record.header);
        Ok(Pending::new(move |done| {
            let (lower, upper) = band(config.bound);
            let [sum, held, squares, squares_low, high, low] = done.sums(header);
            let squares = squares + squares_low;
            let (n, count_rows) = (config.divisor.of(all as f64), kept.len() as f64);
            let means = |column| -> Vec<f64> {
                let mean = |(sum, &kept)| if kept == 0 { 0.0 } else { sum / config.divisor.of(kept as f64) };
                rows(done, column).into_iter().zip(&kept).map(mean).collect()
            };
            let (applied, raw) = (means(sums[0]), means(sums[1]));
            let [most, least] = ends.map(|end| {
                let ends = rows(done, end).into_iter().zip(&kept).filter(|(_, &kept)| kept > 0);
                extremes(ends.map(|(end, _)| end))
            });
            let mut metrics = RolloutWeightMetrics::default();
            (metrics.max, metrics.min) = (most.0, least.1);
            (metrics.ratio_fraction_high, metrics.ratio_fraction_low) = (high / n, low / n);
            if let Some(logs) = logs {
                let geometric = config.level == RolloutLevel::Geometric;
                let of = |(log, &kept)| match geometric && kept > 0 {
                    true => log / config.divisor.of(kept as f64),
                    false => log,
                };
                let logs: Vec<f64> = rows(done, logs).into_iter().zip(&kept).map(of).collect();
                let (most, least) = extremes(logs.iter().copied());
                (metrics.max, metrics.min) = (exp(most.min(20.0)), exp(least));
                metrics.ratio_fraction_high = count(logs.iter().map(|&log| log > ln(upper))) / count_rows;
                metrics.ratio_fraction_low = count(logs.iter().map(|&log| log < ln(lower))) / count_rows;
            }
            let (held_mean, mean_square) = (held / n, squares / n);
            metrics.mean = sum / n;
            metrics.std = if all > 1 { sqrt((mean_square - held_mean * held_mean).max(0.0)) } else { 0.0 };
            metrics.eff_sample_size =
                if mean_square == 0.0 { 0.0 } else { (held_mean + 1e-8) * (held_mean + 1e-8) / mean_square };
            metrics.seq_mean = total(applied.iter().copied()) / count_rows;
            metrics.seq_std = deviation(applied.iter().copied());
            (metrics.seq_max, metrics.seq_min) = extremes(applied.iter().copied());
            metrics.seq_max_deviation = extremes(applied.iter().map(|mean| (mean - 1.0).abs())).0;
            metrics.seq_fraction_high = count(raw.iter().map(|&mean| mean > upper)) / count_rows;
            metrics.seq_fraction_low = count(raw.iter().map(|&mean| mean < lower)) / count_rows;
            metrics.oob_ratio = matches!(config.bound, WeightBound::Zero { .. }).then(|| (high + low) / n);
            let by_sequence = config.normalize == BatchNormalize::ByLevel && !token_level;
            let factor = if by_sequence { total(applied.iter().copied()) / with_kept } else { sum / n };
            metrics.batch_norm_factor =
                (config.normalize != BatchNormalize::Off).then_some(if factor > 1e-8 { factor } else { 1.0 });
            metrics
        }))
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![rollout_weights, rollout_weight_metrics];

fn rollout_weights(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (weights, factor) = recording.rollout_weights(&batch(call)?, &input(call)?, &call.config()?)?;
    Ok(Answer { columns: vec![("weights", weights)], ..numbers(factor, |factor| vec![("factor", factor)]) })
}

fn rollout_weight_metrics(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let metrics = recording.rollout_weight_metrics(&batch(call)?, &input(call)?, &call.config()?)?;
    Ok(numbers(metrics, |metrics| metrics.entries().collect()))
}
