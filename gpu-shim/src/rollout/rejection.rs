//! Rejection of tokens and sequences by several criteria.

use tokenwise::{
    math::{ln, sqrt},
    rollout::{self, Criterion, CriterionMetrics, RejectionConfig, RejectionOption, RejectionTotals},
    Divisor,
};

use super::{count, deviation, extremes, input, rows, total, RolloutColumns, PAIR, TWO};
use crate::{
    batch::GpuBatch,
    call::{batch, column, numbers, runners, Answer, Request, Runner},
    column::Column,
    error::GpuError,
    fold::Fold,
    metric::two_tokens,
    recording::{Pending, Recording},
    rows::kept_per_row,
    token::{bits, kernel, sequence, token, weight, Setting, Term, TokenKernel},
};

const REJECTION_TOKENS: TokenKernel = kernel(
    "rollout/rejection_tokens",
    concat!(
        include_str!("../../shaders/rollout/rejection.wgsl"),
        include_str!("../../shaders/rollout/rejection_tokens.wgsl")
    ),
    PAIR,
    &["statistics"],
    &[],
    &[Setting::U32("statistic")],
);

const REJECT_TOKEN: TokenKernel = kernel(
    "rollout/reject_token",
    concat!(
        include_str!("../../shaders/rollout/rejection.wgsl"),
        include_str!("../../shaders/rollout/reject_token.wgsl")
    ),
    &[token("old_log_probs"), token("rollout_log_probs"), weight("earlier")],
    &["keep"],
    &[],
    &[Setting::U32("statistic"), Setting::F32("lower"), Setting::F32("upper")],
);

const REJECT_SEQUENCE: TokenKernel = kernel(
    "rollout/reject_sequence",
    include_str!("../../shaders/rollout/reject_sequence.wgsl"),
    &[sequence("totals"), sequence("counts"), weight("earlier")],
    &["keep"],
    &[],
    &[Setting::U32("mean"), Setting::F32("lower"), Setting::F32("upper")],
);

const REJECTION_METRICS: TokenKernel = kernel(
    "rollout/rejection_metrics",
    concat!(
        include_str!("../../shaders/rollout/rejection.wgsl"),
        include_str!("../../shaders/rollout/rejection_metrics.wgsl")
    ),
    PAIR,
    &["statistics", "dropped"],
    &[
        Term::Number("sum"),
        Term::Number("held_sum"),
        Term::Number("square"),
        Term::Number("square_low"),
        Term::Count("high"),
        Term::Count("low"),
        Term::Count("dropped_sum"),
    ],
    &[Setting::U32("statistic"), Setting::F32("floor"), Setting::F32("lower"), Setting::F32("upper")],
);

/// How a criterion sees a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Token,
    Sum,
    Mean,
    Max,
}

/// The scope of a criterion, and its statistic as the shader numbers it; `None` for one that has no kernel.
fn parts(option: RejectionOption) -> Option<(Scope, u32)> {
    Some(match option {
        RejectionOption::TokenK1 => (Scope::Token, 0),
        RejectionOption::TokenK2 => (Scope::Token, 1),
        RejectionOption::TokenK3 => (Scope::Token, 2),
        RejectionOption::SeqSumK1 => (Scope::Sum, 0),
        RejectionOption::SeqSumK2 => (Scope::Sum, 1),
        RejectionOption::SeqSumK3 => (Scope::Sum, 2),
        RejectionOption::SeqMeanK1 => (Scope::Mean, 0),
        RejectionOption::SeqMeanK2 => (Scope::Mean, 1),
        RejectionOption::SeqMeanK3 => (Scope::Mean, 2),
        RejectionOption::SeqMaxK2 => (Scope::Max, 1),
        RejectionOption::SeqMaxK3 => (Scope::Max, 2),
        _ => return None,
    })
}

fn bounds(criterion: &Criterion) -> (f64, f64) {
    match criterion.option.takes_ratios() {
        true => (ln(criterion.lower), ln(criterion.upper)),
        false => (f64::NEG_INFINITY, criterion.upper),
    }
}

const NO_CRITERION: GpuError = GpuError::Unsupported("a criterion that has no kernel");

impl Recording<'_> {
    /// The tokens that no criterion rejects: the core's [`rollout_rejection`](rollout::rollout_rejection).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn rollout_rejection(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &RejectionConfig<'_>,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        rollout::rollout_rejection(&two_tokens()?, TWO, config, &mut [false; 2])?;
        if config.criteria.iter().any(|criterion| parts(criterion.option).is_none()) {
            return Err(NO_CRITERION);
        }
        let pair = self.pair(input)?;
        self.rejected(batch, &pair, config)
    }

    fn rejected(
        &mut self,
        batch: &GpuBatch<'_>,
        [old, rollout]: &[Column; 2],
        config: &RejectionConfig<'_>,
    ) -> Result<Column, GpuError> {
        let mut keep: Option<Column> = None;
        for criterion in config.criteria {
            let (scope, statistic) = parts(criterion.option).ok_or(NO_CRITERION)?;
            let (lower, upper) = bounds(criterion);
            let (lower, upper) = (bits(lower), bits(upper));
            let ([kept], _) = if scope == Scope::Token {
                let given = [Some(old), Some(rollout), keep.as_ref()];
                self.tokens(&REJECT_TOKEN, batch, &given, &[statistic, lower, upper])?
            } else {
                let totals = self.statistic(batch, [old, rollout], scope, statistic)?;
                let counts = batch.counts(self)?;
                let mean = u32::from(scope == Scope::Mean);
                let given = [Some(&totals), Some(&counts), keep.as_ref()];
                self.tokens(&REJECT_SEQUENCE, batch, &given, &[mean, lower, upper])?
            };
            keep = Some(kept);
        }
        match keep {
            Some(keep) => Ok(keep),
            None => {
                let ones = self.upload(&vec![1.0; batch.host().sequences()])?;
                self.broadcast(batch, &ones.into())
            }
        }
    }

    /// The sum or the largest of a statistic over each sequence.
    fn statistic(
        &mut self,
        batch: &GpuBatch<'_>,
        [old, rollout]: [&Column; 2],
        scope: Scope,
        statistic: u32,
    ) -> Result<Column, GpuError> {
        let ([statistics], _) = self.tokens(&REJECTION_TOKENS, batch, &[Some(old), Some(rollout)], &[statistic])?;
        self.fold(if scope == Scope::Max { Fold::Max } else { Fold::Sum }, batch, &statistics)
    }

    /// What each criterion measures and rejects: the core's
    /// [`rollout_rejection_metrics`](rollout::rollout_rejection_metrics).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn rollout_rejection_metrics(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &RejectionConfig<'_>,
    ) -> Result<Pending<(Vec<CriterionMetrics>, RejectionTotals)>, GpuError> {
        input.check(batch)?;
        let mut two = vec![CriterionMetrics::default(); config.criteria.len()];
        rollout::rollout_rejection_metrics(&two_tokens()?, TWO, config, &mut two)?;
        if config.criteria.iter().any(|criterion| parts(criterion.option).is_none()) {
            return Err(NO_CRITERION);
        }
        batch.check_some_kept()?;
        let pair = self.pair(input)?;
        let mut criteria = Vec::new();
        for criterion in config.criteria {
            criteria.push(self.criterion(batch, &pair, criterion, config.divisor)?);
        }
        let keep = self.rejected(batch, &pair, config)?;
        let survivors = self.folded(Fold::Sum, batch, &keep)?;
        let (kept, n) = (kept_per_row(batch.host()), config.divisor.of(batch.host().kept() as f64));
        Ok(Pending::new(move |done| {
            let survivors = rows(done, survivors);
            let dropped = || survivors.iter().zip(&kept).map(|(&survivors, &kept)| kept as f64 - survivors);
            let mut totals = RejectionTotals::default();
            totals.masked_fraction = total(dropped()) / n;
            totals.seq_masked_fraction = count(dropped().map(|dropped| dropped > 0.0)) / kept.len() as f64;
            (criteria.iter().map(|criterion| done.get(criterion)).collect(), totals)
        }))
    }

    fn criterion(
        &mut self,
        batch: &GpuBatch<'_>,
        [old, rollout]: &[Column; 2],
        criterion: &Criterion,
        divisor: Divisor,
    ) -> Result<Pending<CriterionMetrics>, GpuError> {
        let (scope, statistic) = parts(criterion.option).ok_or(NO_CRITERION)?;
        let (lower, upper) = bounds(criterion);
        let ratios = criterion.option.takes_ratios();
        let floor = if ratios { lower } else { 0.0 };
        let settings = [statistic, bits(floor), bits(lower), bits(upper)];
        let ([statistics, dropped], record) =
            self.tokens(&REJECTION_METRICS, batch, &[Some(old), Some(rollout)], &settings)?;
        let totals = self.folded(if scope == Scope::Max { Fold::Max } else { Fold::Sum }, batch, &statistics)?;
        let per_token = match scope {
            Scope::Token => Some([
                self.folded(Fold::Max, batch, &statistics)?,
                self.folded(Fold::Min, batch, &statistics)?,
                self.folded(Fold::Max, batch, &dropped)?,
            ]),
            _ => None,
        };
        let (kept, all, header, option) =
            (kept_per_row(batch.host()), batch.host().kept(), record.header, criterion.option);
        Ok(Pending::new(move |done| {
            let with_kept = |column| rows(done, column).into_iter().zip(&kept).filter(|(_, &kept)| kept > 0);
            let mean = scope == Scope::Mean || scope == Scope::Token;
            let of =
                |(total, kept): (f64, &usize)| (if mean { total / divisor.of(*kept as f64) } else { total }, *kept);
            let sequences: Vec<(f64, usize)> = with_kept(totals).map(of).collect();
            let s = || sequences.iter().map(|&(s, _)| s);
            let outside = |s: f64| !(s >= lower && s <= upper);
            let (n, count_rows) = (divisor.of(all as f64), sequences.len() as f64);
            let (high, low) = (count(s().map(|s| s > upper)), count(s().map(|s| s < lower)));
            let mut metrics = CriterionMetrics::default();
            metrics.option = option;
            (metrics.seq_max, metrics.seq_min) = extremes(s());
            let sums = match per_token {
                Some([most, least, touched]) => {
                    metrics.max = extremes(with_kept(most).map(|(most, _)| most)).0;
                    metrics.min = extremes(with_kept(least).map(|(least, _)| least)).1;
                    metrics.seq_masked_fraction = count(with_kept(touched).map(|(any, _)| any > 0.0)) / count_rows;
                    let [s, held, square, square_low, high, low, dropped] = done.sums(header);
                    [s, held, square + square_low, high, low, dropped]
                }
                None => {
                    (metrics.max, metrics.min) = (metrics.seq_max, metrics.seq_min);
                    metrics.seq_masked_fraction = count(s().map(outside)) / count_rows;
                    let mut sums = [0.0; 6];
                    for &(s, kept) in &sequences {
                        let held = s.max(floor).min(upper);
                        let out = if outside(s) { 1.0 } else { 0.0 };
                        for (sum, term) in sums.iter_mut().zip([s, held, held * held, 0.0, 0.0, out]) {
                            *sum += kept as f64 * term;
                        }
                    }
                    [sums[3], sums[4]] = [high * n / count_rows, low * n / count_rows];
                    sums
                }
            };
            let [mean, held, square, token_high, token_low, dropped] = sums.map(|sum| sum / n);
            metrics.mean = mean;
            metrics.fraction_high = token_high;
            metrics.fraction_low = token_low;
            metrics.std = if all > 1 { sqrt((square - held * held).max(0.0)) } else { 0.0 };
            metrics.seq_mean = total(s()) / count_rows;
            metrics.seq_std = deviation(s());
            metrics.seq_max_deviation = metrics.seq_max.max(-metrics.seq_min);
            metrics.seq_fraction_high = high / count_rows;
            metrics.seq_fraction_low = ratios.then_some(low / count_rows);
            metrics.masked_fraction = dropped;
            metrics
        }))
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![rollout_rejection, rollout_rejection_metrics];

/// Calls `run` with the config of a rejection, which borrows its criteria.
fn with_rejection<T>(
    call: &Request<'_, '_>,
    run: impl FnOnce(&RejectionConfig<'_>) -> Result<T, GpuError>,
) -> Result<T, GpuError> {
    let mut settings = call.config.clone();
    let criteria: Vec<Criterion> = match settings.take("criteria") {
        Some(criteria) => criteria.read("criteria").map_err(tokenwise_catalogue::Refusal::from)?,
        None => Vec::new(),
    };
    let config: RejectionConfig<'_> = settings.read("config").map_err(tokenwise_catalogue::Refusal::from)?;
    run(&RejectionConfig { criteria: &criteria, ..config })
}

fn rollout_rejection(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, input) = (batch(call)?, input(call)?);
    let keep = with_rejection(call, |config| recording.rollout_rejection(&batch, &input, config))?;
    Ok(column("keep", keep))
}

fn rollout_rejection_metrics(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, input) = (batch(call)?, input(call)?);
    let metrics = with_rejection(call, |config| recording.rollout_rejection_metrics(&batch, &input, config))?;
    Ok(numbers(metrics, |(criteria, totals)| {
        criteria.iter().flat_map(CriterionMetrics::entries).chain(totals.entries()).collect()
    }))
}
