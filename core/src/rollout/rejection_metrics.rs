use crate::{
    entries::known,
    error::{check_len, Error, Result},
    layout::{Batch, Row},
    math::{clamp, sqrt},
    real::Real,
    reduce::{count, fold_row, Sum},
    rollout::{
        rejection::{Criterion, RejectionConfig, RejectionOption, Scope},
        RolloutInput,
    },
    simd::multiversion,
    statistics::{Divisor, Extremes, Moments, Spread},
};

/// Statistics of one criterion and of what it drops.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CriterionMetrics {
    /// Which statistic.
    pub option: RejectionOption,
    /// Its mean over tokens; the statistic of a sequence counts once per kept token.
    pub mean: f64,
    /// The largest, over tokens or over sequences depending on the option.
    pub max: f64,
    /// The smallest, likewise.
    pub min: f64,
    /// Share above the upper bound, likewise.
    pub fraction_high: f64,
    /// Share below the lower bound, likewise; 0 except for k1.
    pub fraction_low: f64,
    /// Standard deviation (divided by `n`) over tokens, the statistic clamped to its bounds; 0 for one token.
    pub std: f64,
    /// Mean over sequences of their statistic, or of the mean over their tokens. Sequences without kept tokens do not
    /// count.
    pub seq_mean: f64,
    /// Their standard deviation (divided by `n − 1`); 0 for one sequence.
    pub seq_std: f64,
    /// The largest of them.
    pub seq_max: f64,
    /// The smallest of them.
    pub seq_min: f64,
    /// The largest of their magnitudes.
    pub seq_max_deviation: f64,
    /// Share of them above the upper bound.
    pub seq_fraction_high: f64,
    /// Share of them below the lower bound; k1 only.
    pub seq_fraction_low: Option<f64>,
    /// Share of tokens this criterion drops.
    pub masked_fraction: f64,
    /// Share of sequences in which it drops a token.
    pub seq_masked_fraction: f64,
}

impl Default for CriterionMetrics {
    /// All 0, for the caller's buffer.
    fn default() -> Self {
        let zero = 0.0;
        Self {
            option: RejectionOption::TokenK1,
            mean: zero,
            max: zero,
            min: zero,
            fraction_high: zero,
            fraction_low: zero,
            std: zero,
            seq_mean: zero,
            seq_std: zero,
            seq_max: zero,
            seq_min: zero,
            seq_max_deviation: zero,
            seq_fraction_high: zero,
            seq_fraction_low: None,
            masked_fraction: zero,
            seq_masked_fraction: zero,
        }
    }
}

impl CriterionMetrics {
    /// The keys as verl 0.9.1 logs them.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let keys = keys(self.option);
        let values = [
            Some(self.mean),
            Some(self.max),
            Some(self.min),
            Some(self.fraction_high),
            Some(self.fraction_low),
            Some(self.std),
            Some(self.seq_mean),
            Some(self.seq_std),
            Some(self.seq_max),
            Some(self.seq_min),
            Some(self.seq_max_deviation),
            Some(self.seq_fraction_high),
            self.seq_fraction_low,
            Some(self.masked_fraction),
            Some(self.seq_masked_fraction),
        ];
        known(keys.iter().copied().zip(values))
    }
}

fn keys(option: RejectionOption) -> &'static [&'static str; 15] {
    macro_rules! named {
        ($name:literal) => {
            named!(
                $name: "mean", "max", "min", "fraction_high", "fraction_low", "std", "seq_mean", "seq_std", "seq_max",
                "seq_min", "seq_max_deviation", "seq_fraction_high", "seq_fraction_low", "masked_fraction",
                "seq_masked_fraction"
            )
        };
        ($name:literal: $($key:literal),*) => { &[$(concat!("rollout_corr/rollout_rs_", $name, "_", $key)),*] };
    }
    match option {
        RejectionOption::TokenK1 => named!("token_k1"),
        RejectionOption::TokenK2 => named!("token_k2"),
        RejectionOption::TokenK3 => named!("token_k3"),
        RejectionOption::SeqSumK1 => named!("seq_sum_k1"),
        RejectionOption::SeqSumK2 => named!("seq_sum_k2"),
        RejectionOption::SeqSumK3 => named!("seq_sum_k3"),
        RejectionOption::SeqMeanK1 => named!("seq_mean_k1"),
        RejectionOption::SeqMeanK2 => named!("seq_mean_k2"),
        RejectionOption::SeqMeanK3 => named!("seq_mean_k3"),
        RejectionOption::SeqMaxK2 => named!("seq_max_k2"),
        RejectionOption::SeqMaxK3 => named!("seq_max_k3"),
    }
}

/// Shares that all criteria together drop.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RejectionTotals {
    /// Share of tokens.
    pub masked_fraction: f64,
    /// Share of all sequences, including those without kept tokens, in which a token was dropped.
    pub seq_masked_fraction: f64,
}

impl RejectionTotals {
    /// From the numbers of dropped tokens and touched sequences, and of all.
    pub(crate) fn of([tokens, sequences]: [u64; 2], [kept, all]: [u64; 2], divisor: Divisor) -> Self {
        Self {
            masked_fraction: tokens as f64 / divisor.of(kept as f64),
            seq_masked_fraction: sequences as f64 / all as f64,
        }
    }

    /// The keys as verl 0.9.1 logs them.
    pub fn entries(&self) -> [(&'static str, f64); 2] {
        [
            ("rollout_corr/rollout_rs_masked_fraction", self.masked_fraction),
            ("rollout_corr/rollout_rs_seq_masked_fraction", self.seq_masked_fraction),
        ]
    }
}

/// Statistics of [`rollout_rejection`](crate::rollout::rollout_rejection) per criterion, under verl's keys.
///
/// ```text
/// s the statistic of a token or sequence, L and U its bounds (k1: their logs; the others: L = 0 for the std only)
/// mean = mean over tokens of s      std = √max(mean s̃² − (mean s̃)², 0), s̃ = clip(s, L, U)
/// fraction_high = share s > U
/// ```
///
/// **Alignment.** Action-aligned; `per_criterion` has one entry per criterion, in their order.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if a slice does not fit; [`Error::Entry`] as for the mask; [`Error::EmptyMask`]
/// without kept tokens.
///
/// **Reference.** verl 0.9.1 `compute_rs_metrics`, with [`Divisor::CountPlusEpsilon`]; it computes its shares in single
/// precision.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RolloutInput { old_log_probs: &[-1.0, f64::NAN, -2.0], rollout_log_probs: &[-1.0, f64::NAN, -1.0] };
/// let criteria = [Criterion { option: RejectionOption::TokenK2, upper: 0.25, ..Default::default() }];
/// let config = RejectionConfig { criteria: &criteria, ..Default::default() };
/// let mut metrics = [CriterionMetrics::default()];
/// let totals = rollout_rejection_metrics(&batch, input, &config, &mut metrics)?;
/// assert_eq!((metrics[0].mean, metrics[0].max, totals.masked_fraction), (0.25, 0.5, 0.5));
/// assert_eq!(metrics[0].entries().next(), Some(("rollout_corr/rollout_rs_token_k2_mean", 0.25)));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn rollout_rejection_metrics<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &RejectionConfig<'_>,
    per_criterion: &mut [CriterionMetrics],
) -> Result<RejectionTotals> {
    input.check(batch)?;
    config.check()?;
    check_len("per_criterion", per_criterion, config.criteria.len())?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    for (out, criterion) in per_criterion.iter_mut().zip(config.criteria) {
        *out = metrics(batch, input, criterion, config.divisor);
    }
    let counts = [batch.kept() as u64, batch.sequences() as u64];
    Ok(RejectionTotals::of(dropped(batch, input, config), counts, config.divisor))
}

/// What a sequence with kept tokens adds to the metrics of a criterion.
#[derive(Clone, Copy)]
pub(crate) struct CriterionRow {
    /// Σ s, Σ s̃, Σ s̃² over tokens, and how many are above, below and dropped.
    pub(crate) sums: [f64; 6],
    /// Its statistic.
    pub(crate) statistic: f64,
    /// The extremes over its tokens, for a criterion of tokens.
    pub(crate) tokens: Extremes,
    pub(crate) high: bool,
    pub(crate) low: bool,
}

impl CriterionRow {
    /// Whether one of its tokens is dropped.
    #[inline(always)]
    pub(crate) fn touched(&self) -> bool {
        self.sums[5] > 0.0
    }
}

impl Default for CriterionRow {
    fn default() -> Self {
        Self { sums: [0.0; 6], statistic: 0.0, tokens: Extremes::NONE, high: false, low: false }
    }
}

#[inline(always)]
pub(crate) fn criterion_row<R: Real>(
    row: &Row<'_>,
    input: RolloutInput<'_, R>,
    criterion: &Criterion,
    (lower, upper): (f64, f64),
    divisor: Divisor,
) -> CriterionRow {
    let floor = if criterion.option.takes_ratios() { lower } else { 0.0 };
    let terms = |s: f64| {
        let held = clamp(s, floor, upper);
        ([], [s, held, held * held, count(s > upper), count(s < lower), count(!(s >= lower && s <= upper))])
    };
    let statistic = criterion.sequence(row, input, divisor);
    let mut tokens = Extremes::NONE;
    let sums: [f64; 6] = if criterion.option.parts().0 == Scope::Token {
        let pairs = row.of(input.old_log_probs).iter().zip(row.of(input.rollout_log_probs));
        for ((&old, &rollout), _) in pairs.zip(row.keep).filter(|(_, &keep)| keep) {
            tokens.add(criterion.token(old, rollout));
        }
        fold_row(row, [input.old_log_probs, input.rollout_log_probs], [], |[old, rollout]| {
            terms(criterion.token(old, rollout))
        })
    } else {
        fold_row::<R, f64, 0, 0, 6>(row, [], [], |[]| terms(statistic))
    };
    CriterionRow { sums, statistic, tokens, high: statistic > upper, low: statistic < lower }
}

/// What all sequences come to, for one criterion.
pub(crate) struct CriterionTotals {
    pub(crate) kept: u64,
    /// Of [`CriterionRow::sums`].
    pub(crate) sums: [f64; 6],
    /// Of the statistics of sequences.
    pub(crate) statistics: f64,
    pub(crate) moments: Moments,
    pub(crate) tokens: Extremes,
    pub(crate) sequences: Extremes,
    /// How many sequences are above, below and touched.
    pub(crate) outside: [f64; 3],
}

impl CriterionTotals {
    pub(crate) fn metrics(&self, option: RejectionOption, divisor: Divisor) -> CriterionMetrics {
        let n = divisor.of(self.kept as f64);
        let rows = self.moments.count as f64;
        let [mean, held, square, token_high, token_low, dropped] = self.sums.map(|sum| sum / n);
        let [high, low, touched] = self.outside;
        let variance = square - held * held;
        let per_token = option.parts().0 == Scope::Token;
        let (extremes, sequences) = (if per_token { self.tokens } else { self.sequences }, self.sequences);
        CriterionMetrics {
            option,
            mean,
            max: extremes.max,
            min: extremes.min,
            fraction_high: if per_token { token_high } else { high / rows },
            fraction_low: if per_token { token_low } else { low / rows },
            std: if self.kept > 1 { sqrt(if variance < 0.0 { 0.0 } else { variance }) } else { 0.0 },
            seq_mean: self.statistics / rows,
            seq_std: self.moments.variance(Spread::Sample, Divisor::Count).map_or(0.0, sqrt),
            seq_max: sequences.max,
            seq_min: sequences.min,
            seq_max_deviation: if -sequences.min > sequences.max { -sequences.min } else { sequences.max },
            seq_fraction_high: high / rows,
            seq_fraction_low: option.takes_ratios().then_some(low / rows),
            masked_fraction: dropped,
            seq_masked_fraction: touched / rows,
        }
    }
}

#[multiversion]
fn metrics<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    criterion: &Criterion,
    divisor: Divisor,
) -> CriterionMetrics {
    let bounds = criterion.bounds();
    let mut sums = [Sum::default(); 6];
    let (mut tokens, mut sequences) = (Extremes::NONE, Extremes::NONE);
    let (mut moments, mut statistics, mut outside) = (Moments::default(), Sum::default(), [0.0; 3]);
    for row in batch.token_rows().filter(|row| row.last_kept().is_some()) {
        let found = criterion_row(&row, input, criterion, bounds, divisor);
        Sum::add_each(&mut sums, &found.sums);
        moments.merge(&Moments { count: 1, mean: found.statistic, m2: 0.0 });
        statistics.add(found.statistic);
        tokens.merge(found.tokens);
        sequences.add(found.statistic);
        let flags = [found.high, found.low, found.touched()];
        outside.iter_mut().zip(flags).for_each(|(total, yes)| *total += count(yes));
    }
    let totals = CriterionTotals {
        kept: batch.kept() as u64,
        sums: Sum::values(&sums),
        statistics: statistics.value(),
        moments,
        tokens,
        sequences,
        outside,
    };
    totals.metrics(criterion.option, divisor)
}

/// How many tokens all criteria together drop, and in how many sequences. One pass that needs no mask buffer.
pub(crate) fn dropped<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &RejectionConfig<'_>,
) -> [u64; 2] {
    let (mut tokens, mut sequences) = (0_u64, 0_u64);
    for row in batch.token_rows() {
        let by_sequence = config.criteria.iter().filter(|criterion| criterion.option.parts().0 != Scope::Token);
        let outside = |criterion: &Criterion, s: f64| {
            let (lower, upper) = criterion.bounds();
            !(s >= lower && s <= upper)
        };
        let whole = by_sequence
            .into_iter()
            .any(|criterion| outside(criterion, criterion.sequence(&row, input, config.divisor)));
        let pairs = row.of(input.old_log_probs).iter().zip(row.of(input.rollout_log_probs));
        let dropped = pairs.zip(row.keep).filter(|(_, &keep)| keep).filter(|&((&old, &rollout), _)| {
            whole
                || config
                    .criteria
                    .iter()
                    .filter(|criterion| criterion.option.parts().0 == Scope::Token)
                    .any(|criterion| outside(criterion, criterion.token(old, rollout)))
        });
        let dropped = dropped.count() as u64;
        tokens += dropped;
        sequences += u64::from(dropped > 0);
    }
    [tokens, sequences]
}
