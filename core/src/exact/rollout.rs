use super::{
    limbs,
    moments::deviations,
    partial::{key, number, peak, state, Partial as _},
    row::{add_each, again, each_row, Due},
    sum::{mean, rounded},
};
use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    parallel::Part,
    real::Real,
    rollout::{
        criterion_row, deviation_from_one, divide, dropped, rollout_weights, weight_row, Band, BatchNormalize,
        Criterion, CriterionMetrics, CriterionRow, CriterionTotals, RejectionConfig, RejectionTotals, RolloutConfig,
        RolloutInput, RolloutWeightMetrics, WeightRow, WeightTotals,
    },
    simd::multiversion,
    statistics::{Divisor, Extremes, Moments},
};

state! {
    /// The sums and extremes behind the mean of importance weights and their metrics, not rounded.
    ExactRolloutWeights, kind: 10,
    pieces: [
        Count TOKENS, Count SEQUENCES, Count KEPT_SEQUENCES,
        Count LOG_HIGH, Count LOG_LOW, Count MEAN_HIGH, Count MEAN_LOW, Count HIGH, Count LOW,
        Sum APPLIED, Sum HELD, Sum HELD_SQUARES, Sum MEANS, Products MEANS_SQUARED,
    ],
    peaks: 8
}

/// Where the largest and the negated smallest number of each are among the peaks of [`ExactRolloutWeights`].
mod weight_peak {
    pub(super) const APPLIED: usize = 0;
    pub(super) const LOGS: usize = 2;
    pub(super) const MEANS: usize = 4;
    pub(super) const DEVIATIONS: usize = 6;
}

impl ExactRolloutWeights {
    /// Adds a batch. All batches of a state have the same config.
    ///
    /// # Errors
    ///
    /// Those of [`rollout_weights`]. An empty mask is not one.
    pub fn update<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: RolloutInput<'_, R>,
        config: &RolloutConfig,
    ) -> Result<()> {
        input.check(batch)?;
        config.check::<R>()?;
        self.add_count(Self::TOKENS, batch.kept());
        self.add_count(Self::SEQUENCES, batch.sequences());
        let mut peaks = self.peaks;
        let mut counts = [0; 7];
        let [applied, held, squares, means, means_squared] = self.pieces_mut(Self::APPLIED);
        let mut sums = [applied, held, squares, means, means_squared];
        let mut due = Due::default();
        each_row::<R, _>(
            batch,
            |part, report| weight_rows(&part.batch, of_part(input, part), config, report),
            |_, found: WeightRow| {
                let [applied, held, squares, means, means_squared] = again(&mut sums);
                let [sum, held_sum, held_squares, _, high, low] = found.sums;
                add_each([applied, held, squares, means], [sum, held_sum, held_squares, found.mean]);
                limbs::add_product(means_squared, [found.mean, found.mean], 1);
                due.carry(again(&mut sums));
                let outside = found.outside.map(usize::from);
                let more = [usize::from(found.kept > 0), outside[0], outside[1], outside[2], outside[3]];
                let tokens = [high as usize, low as usize];
                counts.iter_mut().zip(more.into_iter().chain(tokens)).for_each(|(count, more)| *count += more);
                add_extremes(&mut peaks, weight_peak::APPLIED, found.applied);
                if let Some(log_ratio) = found.log_ratio {
                    peak(&mut peaks, weight_peak::LOGS, log_ratio);
                }
                peak(&mut peaks, weight_peak::MEANS, found.mean);
                peak(&mut peaks, weight_peak::DEVIATIONS, deviation_from_one(found.mean));
            },
        );
        self.peaks = peaks;
        for (index, count) in (Self::KEPT_SEQUENCES..=Self::LOW).zip(counts) {
            self.add_count(index, count);
        }
        self.canonical();
        Ok(())
    }

    fn totals(&self) -> WeightTotals {
        let [tokens, sequences, kept_sequences] =
            [Self::TOKENS, Self::SEQUENCES, Self::KEPT_SEQUENCES].map(|index| self.count(index));
        let [applied, held, squares, means] =
            [Self::APPLIED, Self::HELD, Self::HELD_SQUARES, Self::MEANS].map(|index| self.piece(index));
        let count = |index| self.count(index) as f64;
        WeightTotals {
            tokens,
            sequences,
            kept_sequences,
            // the sum of the raw weights is read per sequence only
            sums: [rounded(applied), rounded(held), rounded(squares), 0.0, count(Self::HIGH), count(Self::LOW)],
            mean_sum: rounded(means),
            means: moments(sequences, means, self.piece(Self::MEANS_SQUARED)),
            applied: extremes(&self.peaks, weight_peak::APPLIED),
            logs: extremes(&self.peaks, weight_peak::LOGS),
            mean_extremes: extremes(&self.peaks, weight_peak::MEANS),
            deviation: number(self.peaks[weight_peak::DEVIATIONS]),
            outside: [Self::LOG_HIGH, Self::LOG_LOW, Self::MEAN_HIGH, Self::MEAN_LOW].map(count),
        }
    }

    /// The result of [`rollout_weight_metrics`](crate::rollout::rollout_weight_metrics) for all batches together.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no token was added.
    pub fn metrics(&self, config: &RolloutConfig) -> Result<RolloutWeightMetrics> {
        if self.count(Self::TOKENS) == 0 {
            return Err(Error::EmptyMask);
        }
        Ok(self.totals().metrics(config))
    }

    /// Like [`rollout_weights`] for a batch that is a part of all, divided by the mean of all. Returns that mean; 1 if
    /// the weights are not divided.
    ///
    /// # Errors
    ///
    /// Those of [`rollout_weights`]; [`Error::EmptyMask`] if the mean is needed and no token was added.
    pub fn weights<R: Real>(
        &self,
        batch: &Batch<'_>,
        input: RolloutInput<'_, R>,
        config: &RolloutConfig,
        weights: &mut [R],
    ) -> Result<f64> {
        check_len("weights", weights, batch.tokens())?;
        if config.normalize != BatchNormalize::Off && self.count(Self::TOKENS) == 0 {
            return Err(Error::EmptyMask);
        }
        rollout_weights(batch, input, &RolloutConfig { normalize: BatchNormalize::Off, ..*config }, weights)?;
        let factor = self.totals().mean_weight(config);
        if config.normalize == BatchNormalize::Off || factor <= 1e-8 {
            return Ok(1.0);
        }
        divide(batch, factor, weights);
        Ok(factor)
    }
}

state! {
    /// The sums and extremes behind the metrics of one rejection criterion, not rounded. A state has a fixed size, so
    /// that each criterion has its own; [`ExactRejection`] has what all of them drop together.
    ExactCriterion, kind: 11,
    pieces: [
        Count TOKENS, Count SEQUENCES, Count SEQUENCES_HIGH, Count SEQUENCES_LOW, Count TOUCHED,
        Count HIGH, Count LOW, Count DROPPED,
        Sum STATISTICS, Sum HELD, Sum HELD_SQUARES, Sum OF_SEQUENCES, Products OF_SEQUENCES_SQUARED,
    ],
    peaks: 4
}

impl ExactCriterion {
    /// Adds a batch. All batches of a state have the same criterion and divisor.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`; [`Error::Entry`] if the bounds are not positive or not in
    /// order. An empty mask is not an error.
    pub fn update<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: RolloutInput<'_, R>,
        criterion: &Criterion,
        divisor: Divisor,
    ) -> Result<()> {
        input.check(batch)?;
        criterion.check(0)?;
        self.add_count(Self::TOKENS, batch.kept());
        let mut peaks = self.peaks;
        let mut counts = [0; 7];
        let mut sums: [&mut [i64]; 5] = self.pieces_mut(Self::STATISTICS);
        let mut due = Due::default();
        each_row::<R, _>(
            batch,
            |part, report| criterion_rows(&part.batch, of_part(input, part), criterion, divisor, report),
            |_, found: Option<CriterionRow>| {
                let Some(found) = found else { return };
                let [of_tokens, held, squares, of_sequences, of_sequences_squared] = again(&mut sums);
                let [sum, held_sum, held_squares, high, low, dropped] = found.sums;
                let s = found.statistic;
                add_each([of_tokens, held, squares, of_sequences], [sum, held_sum, held_squares, s]);
                limbs::add_product(of_sequences_squared, [s, s], 1);
                due.carry(again(&mut sums));
                let of_sequence = [true, found.high, found.low, found.touched()].map(usize::from);
                let of_tokens = [high, low, dropped].map(|count| count as usize);
                counts.iter_mut().zip(of_sequence.into_iter().chain(of_tokens)).for_each(|(all, more)| *all += more);
                add_extremes(&mut peaks, 0, found.tokens);
                peak(&mut peaks, 2, s);
            },
        );
        self.peaks = peaks;
        for (index, count) in (Self::SEQUENCES..=Self::DROPPED).zip(counts) {
            self.add_count(index, count);
        }
        self.canonical();
        Ok(())
    }

    /// The entry of [`rollout_rejection_metrics`](crate::rollout::rollout_rejection_metrics) for all batches together.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no token was added.
    pub fn metrics(&self, criterion: &Criterion, divisor: Divisor) -> Result<CriterionMetrics> {
        let kept = self.count(Self::TOKENS);
        if kept == 0 {
            return Err(Error::EmptyMask);
        }
        let [of_tokens, held, squares, of_sequences] =
            [Self::STATISTICS, Self::HELD, Self::HELD_SQUARES, Self::OF_SEQUENCES].map(|index| self.piece(index));
        let [high, low, dropped] = [Self::HIGH, Self::LOW, Self::DROPPED].map(|index| self.count(index) as f64);
        let totals = CriterionTotals {
            kept,
            sums: [rounded(of_tokens), rounded(held), rounded(squares), high, low, dropped],
            statistics: rounded(of_sequences),
            moments: moments(self.count(Self::SEQUENCES), of_sequences, self.piece(Self::OF_SEQUENCES_SQUARED)),
            tokens: extremes(&self.peaks, 0),
            sequences: extremes(&self.peaks, 2),
            outside: [Self::SEQUENCES_HIGH, Self::SEQUENCES_LOW, Self::TOUCHED].map(|index| self.count(index) as f64),
        };
        Ok(totals.metrics(criterion.option, divisor))
    }
}

state! {
    /// How many tokens all rejection criteria together drop, and in how many sequences.
    ExactRejection, kind: 12, pieces: [Count TOKENS, Count SEQUENCES, Count DROPPED, Count TOUCHED], peaks: 0
}

impl ExactRejection {
    /// Adds a batch. All batches of a state have the same config.
    ///
    /// # Errors
    ///
    /// Those of [`rollout_rejection`](crate::rollout::rollout_rejection).
    pub fn update<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: RolloutInput<'_, R>,
        config: &RejectionConfig<'_>,
    ) -> Result<()> {
        input.check(batch)?;
        config.check()?;
        let [tokens, sequences] = dropped(batch, input, config);
        for (index, count) in [
            (Self::TOKENS, batch.kept()),
            (Self::SEQUENCES, batch.sequences()),
            (Self::DROPPED, tokens as usize),
            (Self::TOUCHED, sequences as usize),
        ] {
            self.add_count(index, count);
        }
        Ok(())
    }

    /// The shares of all batches together.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no token was added.
    pub fn totals(&self, divisor: Divisor) -> Result<RejectionTotals> {
        let [tokens, sequences, dropped, touched] =
            [Self::TOKENS, Self::SEQUENCES, Self::DROPPED, Self::TOUCHED].map(|index| self.count(index));
        if tokens == 0 {
            return Err(Error::EmptyMask);
        }
        Ok(RejectionTotals::of([dropped, touched], [tokens, sequences], divisor))
    }
}

/// Count, mean and squared deviations of numbers whose sums are whole.
fn moments(count: u64, sum: &[i64], squares: &[i64]) -> Moments {
    if count == 0 {
        return Moments::default();
    }
    Moments { count, mean: mean(sum, count), m2: deviations(count, squares, sum, sum) }
}

fn add_extremes(peaks: &mut [i64], first: usize, found: Extremes) {
    // nothing for no numbers, whose extremes are in the wrong order
    if found.min.is_nan() || found.min <= found.max {
        peaks[first] = peaks[first].max(key(found.max));
        peaks[first + 1] = peaks[first + 1].max(key(-found.min));
    }
}

fn extremes(peaks: &[i64], first: usize) -> Extremes {
    Extremes { max: number(peaks[first]), min: -number(peaks[first + 1]) }
}

fn of_part<'a, R>(input: RolloutInput<'a, R>, part: &Part<'_>) -> RolloutInput<'a, R> {
    RolloutInput { old_log_probs: part.of(input.old_log_probs), rollout_log_probs: part.of(input.rollout_log_probs) }
}

#[multiversion]
fn weight_rows<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &RolloutConfig,
    report: &mut dyn FnMut(WeightRow),
) {
    let band = Band::of(config);
    // also those without slots: each counts as a weight of 0 in any split
    for row in batch.rows() {
        report(weight_row(&row, input, config, band));
    }
}

#[multiversion]
fn criterion_rows<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    criterion: &Criterion,
    divisor: Divisor,
    report: &mut dyn FnMut(Option<CriterionRow>),
) {
    let bounds = criterion.bounds();
    for row in batch.token_rows() {
        let kept = row.last_kept().is_some();
        report(kept.then(|| criterion_row(&row, input, criterion, bounds, divisor)));
    }
}
