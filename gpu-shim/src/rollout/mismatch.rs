//! How far trainer and sampler disagree.

use tokenwise::{
    math::{exp, sqrt},
    rollout::{ProbabilityDifference, RolloutMismatch},
    CoMoments, Divisor, MeanConfig, Moments, Spread,
};

use super::{extremes, input, rows, RolloutColumns, PAIR};
use crate::{
    batch::GpuBatch,
    call::{batch, numbers, runners, Answer, Request, Runner},
    error::GpuError,
    fold::Fold,
    recording::{Pending, Recording},
    rows::kept_per_row,
    token::{bits, kernel, token, whole, Setting, Term, TokenKernel},
};

const MISMATCH: TokenKernel = kernel(
    "rollout/mismatch",
    include_str!("../../shaders/rollout/mismatch.wgsl"),
    PAIR,
    &["deltas"],
    &[Term::Number("delta"), Term::Number("k3"), Term::Number("square")],
    &[],
);

const PROBABILITIES: TokenKernel = kernel(
    "rollout/probabilities",
    include_str!("../../shaders/rollout/probabilities.wgsl"),
    PAIR,
    &["gaps"],
    &[Term::Number("p"), Term::Number("q"), Term::Number("gap")],
    &[],
);

const PROBABILITY_SQUARES: TokenKernel = kernel(
    "rollout/probability_squares",
    concat!(
        include_str!("../../shaders/advantage/moments.wgsl"),
        include_str!("../../shaders/rollout/probability_squares.wgsl")
    ),
    &[token("old_log_probs"), token("rollout_log_probs"), whole("sums")],
    &[],
    &[
        Term::Number("rest_p"),
        Term::Number("rest_q"),
        Term::Number("square_p"),
        Term::Number("square_q"),
        Term::Number("product"),
        Term::Number("rest_gap"),
        Term::Number("square_gap"),
    ],
    &[Setting::F32("count")],
);

impl Recording<'_> {
    /// How far trainer and sampler disagree: the core's [`rollout_mismatch`](tokenwise::rollout::rollout_mismatch).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn rollout_mismatch(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &MeanConfig,
    ) -> Result<Pending<RolloutMismatch>, GpuError> {
        input.check(batch)?;
        batch.check_some_kept()?;
        let [old, rollout] = self.pair(input)?;
        let ([deltas], record) = self.tokens(&MISMATCH, batch, &[Some(&old), Some(&rollout)], &[])?;
        let sums = [
            self.folded(Fold::Sum, batch, &old)?,
            self.folded(Fold::Sum, batch, &rollout)?,
            self.folded(Fold::Sum, batch, &deltas)?,
        ];
        let (kept, n) = (kept_per_row(batch.host()), config.divisor.of(batch.host().kept() as f64));
        let (header, divisor) = (record.header, config.divisor);
        Ok(Pending::new(move |done| {
            let [olds, rollouts, deltas] = sums.map(|column| rows(done, column));
            let mut totals = [0.0; 8];
            let mut differences = Vec::with_capacity(kept.len());
            for (row, &kept) in kept.iter().enumerate() {
                let mean = |sum: f64| if kept == 0 { 0.0 } else { sum / divisor.of(kept as f64) };
                let (old, rollout) = (mean(olds[row]), mean(rollouts[row]));
                // from the sum of the differences, in which nothing cancels
                let difference = -mean(deltas[row]);
                differences.push(difference);
                let terms = [
                    exp(-old),
                    -old,
                    exp(-rollout),
                    -rollout,
                    difference,
                    difference.abs(),
                    exp(difference),
                    exp(2.0 * deltas[row].clamp(-20.0, 20.0)),
                ];
                for (total, term) in totals.iter_mut().zip(terms) {
                    *total += term;
                }
            }
            let [delta, k3, square] = done.sums::<3>(header).map(|sum| sum / n);
            let means = totals.map(|total| total / kept.len() as f64);
            let mut mismatch = RolloutMismatch::default();
            (mismatch.training_ppl, mismatch.training_log_ppl) = (means[0], means[1]);
            (mismatch.kl, mismatch.k3_kl) = (-delta, k3);
            (mismatch.rollout_ppl, mismatch.rollout_log_ppl) = (means[2], means[3]);
            (mismatch.log_ppl_diff, mismatch.log_ppl_abs_diff) = (means[4], means[5]);
            (mismatch.log_ppl_diff_max, mismatch.log_ppl_diff_min) = extremes(differences.into_iter());
            mismatch.ppl_ratio = means[6];
            (mismatch.chi2_token, mismatch.chi2_seq) = (square - 1.0, means[7] - 1.0);
            mismatch
        }))
    }

    /// How far the probabilities of trainer and sampler are apart: the core's
    /// [`probability_difference`](tokenwise::rollout::probability_difference).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn probability_difference(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
    ) -> Result<Pending<ProbabilityDifference>, GpuError> {
        input.check(batch)?;
        batch.check_some_kept()?;
        let [old, rollout] = self.pair(input)?;
        let ([gaps], sums) = self.tokens(&PROBABILITIES, batch, &[Some(&old), Some(&rollout)], &[])?;
        let most = self.folded(Fold::Max, batch, &gaps)?;
        let count = batch.host().kept();
        let given = [Some(&old), Some(&rollout), Some(&sums.column)];
        let ([], squares) = self.tokens(&PROBABILITY_SQUARES, batch, &given, &[bits(count as f64)])?;
        let (sums, squares) = (sums.header, squares.header);
        Ok(Pending::new(move |done| {
            let n = count as f64;
            let [p, q, gap] = done.sums::<3>(sums).map(|sum| sum / n);
            let [rest_p, rest_q, pp, qq, pq, rest, square] = done.sums(squares);
            let joint = CoMoments {
                count: count as u64,
                mean_x: p,
                mean_y: q,
                m2_x: (pp - rest_p * rest_p / n).max(0.0),
                m2_y: (qq - rest_q * rest_q / n).max(0.0),
                co_moment: pq - rest_p * rest_q / n,
            };
            let gaps = Moments { count: count as u64, mean: gap, m2: (square - rest * rest / n).max(0.0) };
            let mut difference = ProbabilityDifference::default();
            // sequences without a kept token have 0, and no difference is below it
            difference.max = extremes(rows(done, most).into_iter()).0;
            difference.mean = gap;
            difference.std = gaps.variance(Spread::Sample, Divisor::Count).map_or(f64::NAN, sqrt);
            difference.pearson = joint.correlation().unwrap_or(f64::NAN);
            difference
        }))
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![rollout_mismatch, probability_difference];

fn rollout_mismatch(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let metrics = recording.rollout_mismatch(&batch(call)?, &input(call)?, &call.config()?)?;
    Ok(numbers(metrics, |metrics| metrics.entries().to_vec()))
}

fn probability_difference(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let metrics = recording.probability_difference(&batch(call)?, &input(call)?)?;
    Ok(numbers(metrics, |metrics| metrics.entries().to_vec()))
}
