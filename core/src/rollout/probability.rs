use crate::{
    error::{Error, Result},
    layout::Batch,
    math::{exp, sqrt},
    real::Real,
    reduce::{fold_row, Sum},
    rollout::RolloutInput,
    simd::multiversion,
    statistics::{CoMoments, Divisor, Extremes, Moments, Spread},
};

/// Differences between the probabilities of trainer and sampler.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProbabilityDifference {
    /// Largest `|p − q|`.
    pub max: f64,
    /// Mean `|p − q|`.
    pub mean: f64,
    /// Standard deviation of `|p − q|` (divided by `n − 1`); NaN for one token.
    pub std: f64,
    /// Pearson's correlation of p and q; NaN for one token, or if one of them is constant.
    pub pearson: f64,
}

impl ProbabilityDifference {
    /// The keys as verl 0.9.1 logs them; `valid` is always 1, because an empty mask is an error.
    pub fn entries(&self) -> [(&'static str, f64); 5] {
        [
            ("training/rollout_probs_diff_valid", 1.0),
            ("training/rollout_probs_diff_max", self.max),
            ("training/rollout_probs_diff_mean", self.mean),
            ("training/rollout_probs_diff_std", self.std),
            ("training/rollout_actor_probs_pearson_corr", self.pearson),
        ]
    }
}

/// How far trainer and sampler are apart in probability rather than in log-probability.
///
/// ```text
/// p = π_old = e^{log π_old}      q = π_rollout      max, mean, std of |p − q|; Pearson(p, q)
/// ```
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** verl 0.9.1 `calculate_debug_metrics`, which gives `valid = 0` and NaN for an empty mask.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let never = f64::NEG_INFINITY;
/// let input = RolloutInput { old_log_probs: &[0.0, f64::NAN, never], rollout_log_probs: &[never, f64::NAN, never] };
/// let difference = probability_difference(&batch, input)?;
/// assert_eq!((difference.max, difference.mean), (1.0, 0.5));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn probability_difference<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>) -> Result<ProbabilityDifference> {
    input.check(batch)?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    Ok(difference(batch, input))
}

/// Sequence by sequence: the means, then the deviations from them, merged.
#[multiversion]
fn difference<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>) -> ProbabilityDifference {
    let (mut joint, mut gaps, mut extremes) = (CoMoments::default(), Moments::default(), Extremes::NONE);
    let mut total = Sum::default();
    let inputs = [input.old_log_probs, input.rollout_log_probs];
    for row in batch.token_rows().filter(|row| row.last_kept().is_some()) {
        let sums = fold_row(&row, inputs, [], |[old, rollout]| {
            let (p, q) = (exp(old), exp(rollout));
            ([], [p.widen(), q.widen(), (p - q).abs().widen()])
        });
        let kept = row.kept();
        let [mean_x, mean_y, mean] = sums.map(|sum| sum / kept as f64);
        let [m2_x, m2_y, co_moment, m2] = fold_row(&row, inputs, [], |[old, rollout]| {
            let (p, q) = (exp(old), exp(rollout));
            let (dx, dy, gap) = (p.widen() - mean_x, q.widen() - mean_y, (p - q).abs().widen() - mean);
            ([], [dx * dx, dy * dy, dx * dy, gap * gap])
        });
        joint.merge(&CoMoments { count: kept as u64, mean_x, mean_y, m2_x, m2_y, co_moment });
        gaps.merge(&Moments { count: kept as u64, mean, m2 });
        total.add(sums[2]);
        let pairs = row.of(inputs[0]).iter().zip(row.of(inputs[1]));
        for ((&old, &rollout), _) in pairs.zip(row.keep).filter(|(_, &keep)| keep) {
            extremes.add((exp(old) - exp(rollout)).abs().widen());
        }
    }
    ProbabilityDifference {
        max: extremes.max,
        mean: total.value() / batch.kept() as f64,
        std: gaps.variance(Spread::Sample, Divisor::Count).map_or(f64::NAN, sqrt),
        pearson: joint.correlation().unwrap_or(f64::NAN),
    }
}
