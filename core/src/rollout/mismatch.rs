use crate::{
    error::{Error, Result},
    layout::{Batch, Row},
    math::{clamp, exp, exp_remainder},
    real::Real,
    reduce::{fold_row, Sum},
    rollout::RolloutInput,
    simd::multiversion,
    statistics::{Divisor, Extremes, MeanConfig},
};

/// Differences between trainer and sampler.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RolloutMismatch {
    /// Mean over sequences of `e^{−mean log π_old}`.
    pub training_ppl: f64,
    /// Mean over sequences of `−mean log π_old`.
    pub training_log_ppl: f64,
    /// Mean over tokens of `−δ`.
    pub kl: f64,
    /// Mean over tokens of `e^δ − 1 − δ`, not bounded.
    pub k3_kl: f64,
    /// Mean over sequences of `e^{−mean log π_rollout}`.
    pub rollout_ppl: f64,
    /// Mean over sequences of `−mean log π_rollout`.
    pub rollout_log_ppl: f64,
    /// Mean over sequences of `mean log π_rollout − mean log π_old`.
    pub log_ppl_diff: f64,
    /// Mean over sequences of the magnitude of that difference.
    pub log_ppl_abs_diff: f64,
    /// The largest difference.
    pub log_ppl_diff_max: f64,
    /// The smallest difference.
    pub log_ppl_diff_min: f64,
    /// Mean over sequences of the exponential of that difference.
    pub ppl_ratio: f64,
    /// Mean over tokens of `e^{2δ}`, minus 1; δ within ±20.
    pub chi2_token: f64,
    /// Mean over sequences of `e^{2 Σδ}`, minus 1; Σδ within ±20.
    pub chi2_seq: f64,
}

impl RolloutMismatch {
    /// The keys as verl 0.9.1 logs them.
    pub fn entries(&self) -> [(&'static str, f64); 13] {
        [
            ("rollout_corr/training_ppl", self.training_ppl),
            ("rollout_corr/training_log_ppl", self.training_log_ppl),
            ("rollout_corr/kl", self.kl),
            ("rollout_corr/k3_kl", self.k3_kl),
            ("rollout_corr/rollout_ppl", self.rollout_ppl),
            ("rollout_corr/rollout_log_ppl", self.rollout_log_ppl),
            ("rollout_corr/log_ppl_diff", self.log_ppl_diff),
            ("rollout_corr/log_ppl_abs_diff", self.log_ppl_abs_diff),
            ("rollout_corr/log_ppl_diff_max", self.log_ppl_diff_max),
            ("rollout_corr/log_ppl_diff_min", self.log_ppl_diff_min),
            ("rollout_corr/ppl_ratio", self.ppl_ratio),
            ("rollout_corr/chi2_token", self.chi2_token),
            ("rollout_corr/chi2_seq", self.chi2_seq),
        ]
    }
}

/// How far the trainer's log-probabilities are from the sampler's: KL, perplexities, χ².
///
/// ```text
/// δ = log π_old − log π_rollout      kl = mean −δ      k3_kl = mean (e^δ − 1 − δ)      ppl = mean_i e^{−mean_t log π}
/// log_ppl_diff = mean_i (mean_t log π_rollout − mean_t log π_old)      chi2_token = mean e^{2δ} − 1
/// chi2_seq = mean_i e^{2Σδ} − 1
/// ```
///
/// All except the two χ² are unbounded: one token with probability 0 makes them infinite.
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens counts as mean log-probability 0: perplexity
/// 1.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** verl 0.9.1 `compute_offpolicy_metrics`, with [`Divisor::CountPlusEpsilon`].
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask, MeanConfig};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RolloutInput { old_log_probs: &[-1.0, f64::NAN, -2.0], rollout_log_probs: &[-0.5, f64::NAN, -2.0] };
/// let mismatch = rollout_mismatch(&batch, input, &MeanConfig::default())?;
/// assert_eq!((mismatch.kl, mismatch.training_log_ppl, mismatch.log_ppl_diff), (0.25, 1.5, 0.25));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn rollout_mismatch<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &MeanConfig,
) -> Result<RolloutMismatch> {
    input.check(batch)?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    Ok(mismatch(batch, input, config.divisor))
}

#[multiversion]
fn mismatch<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>, divisor: Divisor) -> RolloutMismatch {
    let mut tokens = [Sum::default(); 3];
    let mut sequences = [Sum::default(); 8];
    let mut extremes = Extremes::NONE;
    for row in batch.token_rows() {
        let (sums, terms) = mismatch_of_row(&row, input, divisor);
        Sum::add_each(&mut tokens, &sums);
        extremes.add(terms[4]);
        Sum::add_each(&mut sequences, &terms);
    }
    let n = divisor.of(batch.kept() as f64);
    let rows = batch.sequences() as f64;
    let [delta, k3, square] = Sum::means(&tokens, n);
    let [training, log_training, sampler, log_sampler, diff, abs_diff, ratio, chi] = Sum::means(&sequences, rows);
    RolloutMismatch {
        training_ppl: training,
        training_log_ppl: log_training,
        kl: -delta,
        k3_kl: k3,
        rollout_ppl: sampler,
        rollout_log_ppl: log_sampler,
        log_ppl_diff: diff,
        log_ppl_abs_diff: abs_diff,
        log_ppl_diff_max: extremes.max,
        log_ppl_diff_min: extremes.min,
        ppl_ratio: ratio,
        chi2_token: square - 1.0,
        chi2_seq: chi - 1.0,
    }
}

/// What a sequence adds to the means over tokens (δ, e^δ − 1 − δ, e^{2δ}) and to those over sequences, in the order of
/// [`RolloutMismatch`]: perplexities and their logarithms, differences, ratio, χ².
#[inline(always)]
pub(crate) fn mismatch_of_row<R: Real>(
    row: &Row<'_>,
    input: RolloutInput<'_, R>,
    divisor: Divisor,
) -> ([f64; 3], [f64; 8]) {
    let bound = R::narrow(20.0);
    let inputs = [input.old_log_probs, input.rollout_log_probs];
    let sums = fold_row(row, inputs, [], |[old, rollout]| {
        let delta = old - rollout;
        let ratio = exp(clamp(delta, -bound, bound)).widen();
        ([], [old.widen(), rollout.widen(), delta.widen(), exp_remainder(delta).widen(), ratio * ratio])
    });
    let kept = row.kept();
    let mean = |sum: f64| if kept == 0 { 0.0 } else { sum / divisor.of(kept as f64) };
    let (old, rollout) = (mean(sums[0]), mean(sums[1]));
    let difference = rollout - old;
    let terms = [
        exp(-old),
        -old,
        exp(-rollout),
        -rollout,
        difference,
        if difference < 0.0 { -difference } else { difference },
        exp(difference),
        exp(2.0 * clamp(sums[2], -20.0, 20.0)),
    ];
    ([sums[2], sums[3], sums[4]], terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::fixture::{batch, input, near};

    #[test]
    fn the_numbers_of_verl() {
        let config = MeanConfig { divisor: Divisor::CountPlusEpsilon };
        let got = rollout_mismatch(&batch(), input(), &config).unwrap();
        near(got.kl, -0.027333);
        near(got.k3_kl, 0.008237);
        near(got.training_ppl, 2.036372);
        near(got.rollout_ppl, 2.063355);
        near(got.ppl_ratio, 0.985817);
        near(got.chi2_token, 0.091477);
        near(got.chi2_seq, 0.336149);
        near(got.log_ppl_diff, -0.015375);
        near(got.log_ppl_abs_diff, 0.041625);
        near(got.log_ppl_diff_max, 0.04);
        near(got.log_ppl_diff_min, -0.084);
    }
}
