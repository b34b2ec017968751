//! The measurements of a dual game step beyond the five `analysis/…` numbers.

use super::{report::TokenQuantiles, DualGameDistribution, DualGameStep};
use crate::{
    divergence::{kl_value, KlConfig, KlEstimator},
    error::Result,
    layout::Batch,
    math::exp,
    metric::Analysis,
    order::quantile,
    real::Real,
    reduce::{fold_row, map_row, Sum},
    simd::multiversion,
    weight::Kind,
};

/// Σ w H with a weight other than the one of the analysis.
#[multiversion]
pub(super) fn weighted_entropy_sum<R: Real>(batch: &Batch<'_>, input: &DualGameStep<'_, R>) -> f64 {
    let (kind, given) = Kind::of(input.weight, input.ref_log_probs, input.old_log_probs);
    let reference = input.ref_log_probs.unwrap_or(input.old_log_probs);
    let mut sum = Sum::default();
    for row in batch.token_rows() {
        let inputs = [input.old_log_probs, reference, input.advantages, given];
        let [of_row] = fold_row(&row, inputs, [], |[log_prob, reference, advantage, given]| {
            let weight = kind.weigh(log_prob, log_prob - reference, advantage, given).weight;
            ([], [(weight * self_information(log_prob)).widen()])
        });
        sum.add(of_row);
    }
    sum.value()
}

/// Σ of the k3 estimate of KL.
#[multiversion(avx512)]
pub(super) fn kl_sum<R: Real>(batch: &Batch<'_>, log_probs: &[R], reference: &[R]) -> f64 {
    let k3 = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
    let mut sum = Sum::default();
    for row in batch.token_rows() {
        let [of_row] = fold_row(&row, [log_probs, reference], [], |[log_prob, reference]| {
            ([], [kl_value(&k3, log_prob - reference)])
        });
        sum.add(of_row);
    }
    sum.value()
}

/// `−p log p`; 0 for an impossible token.
#[inline(always)]
fn self_information<R: Real>(log_prob: R) -> R {
    let p = exp(log_prob);
    if p == R::zero() {
        R::zero()
    } else {
        -(p * log_prob)
    }
}

/// Quantiles and histograms of H, then of the covariance terms.
pub(super) fn distribute<R: Real>(
    batch: &Batch<'_>,
    input: &DualGameStep<'_, R>,
    measured: &Analysis,
    distribution: DualGameDistribution<'_, R>,
) -> Result<(Option<TokenQuantiles>, Option<TokenQuantiles>)> {
    let DualGameDistribution { scratch, entropy, covariance } = distribution;
    let quantiles =
        |values: &[R]| Some(TokenQuantiles { p50: quantile(batch, values, 0.5), p90: quantile(batch, values, 0.9) });
    for row in batch.token_rows() {
        map_row(&row, [input.old_log_probs], scratch, |[log_prob]| self_information(log_prob));
    }
    entropy.add(batch, scratch)?;
    let of_entropy = quantiles(scratch);
    let (mean_a, mean_l) = (measured.moments.mean_x, measured.moments.mean_y);
    for row in batch.token_rows() {
        map_row(&row, [input.advantages, input.old_log_probs], scratch, |[a, l]| {
            R::narrow((a.widen() - mean_a) * (l.widen() - mean_l))
        });
    }
    covariance.add(batch, scratch)?;
    Ok((of_entropy, quantiles(scratch)))
}
