//! The single pass over the batch that computes the token metrics of TRL.

use super::{summary::Tally, ClipRatios, SamplingMetrics, TrlConfig, TrlInput, TrlLevel, TrlLoss, TrlMetrics};
use crate::{
    divergence::{kl_value, KlConfig, KlEstimator},
    layout::{Batch, Row},
    loss::Clip,
    math::exp,
    metric::{held_of_row, held_token, RatioInput},
    real::Real,
    reduce::{fold_row, row_difference, row_total, Sum},
    simd::multiversion,
    statistics::Extremes,
};

/// The accumulator of [`ClipRatios`].
struct Shares {
    low: Sum,
    high: Sum,
    units: f64,
    lows: Extremes,
    highs: Extremes,
}

impl Shares {
    /// Adds a sequence of `units` units: its tokens, or at sequence level one.
    fn add(&mut self, [low, high, _]: [f64; 3], units: usize) {
        if units == 0 {
            return;
        }
        self.low.add(low);
        self.high.add(high);
        self.units += units as f64;
        self.lows.add(low / units as f64);
        self.highs.add(high / units as f64);
    }

    fn ratios(&self) -> ClipRatios {
        let of = |sum: Sum| if self.units == 0.0 { 0.0 } else { sum.value() / self.units };
        let (low_mean, high_mean) = (of(self.low), of(self.high));
        let known = |x: f64| if self.units == 0.0 { f64::NAN } else { x };
        let (low_min, high_max) = (known(self.lows.min), known(self.highs.max));
        ClipRatios { low_mean, high_mean, region_mean: low_mean + high_mean, low_min, high_max }
    }
}

/// Whether the clip holds the ratio of a sequence; without kept tokens the ratio is 1.
#[inline(always)]
fn held_sequence<R: Real>(row: &Row<'_>, input: RatioInput<'_, R>, clip: &Clip<R>) -> [f64; 3] {
    let Some(first) = row.keep.iter().position(|&keep| keep) else { return [0.0; 3] };
    let sum = row_difference(row, input.log_probs, input.old_log_probs);
    held_token(exp(R::narrow(sum / row.kept() as f64)), row.of(input.advantages)[first], clip)
}

#[multiversion]
pub(super) fn walk<R: Real>(
    batch: &Batch<'_>,
    input: &TrlInput<'_, R>,
    config: &TrlConfig,
    clip: &Clip<R>,
    found: &mut TrlMetrics<'_>,
) {
    let k3 = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
    let clipped = !matches!(input.loss, Some(TrlLoss::Cispo(_) | TrlLoss::Sapo(_) | TrlLoss::Vespo(_)));
    let ratios = match (input.log_probs, input.advantages) {
        (Some(log_probs), Some(advantages)) if clipped => {
            Some(RatioInput { log_probs, old_log_probs: input.old_log_probs.unwrap_or(log_probs), advantages })
        }
        _ => None,
    };
    let (mut kl, mut entropy) = (Sum::default(), Sum::default());
    let (mut gaps, mut weights) = (Tally::new(), Tally::new());
    let mut shares =
        Shares { low: Sum::default(), high: Sum::default(), units: 0.0, lows: Extremes::NONE, highs: Extremes::NONE };
    for row in batch.rows() {
        if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
            let [sum] = fold_row(&row, [policy, reference], [], |[p, q]| ([], [kl_value(&k3, p - q).widen()]));
            kl.add(sum);
        }
        if let Some(entropies) = input.entropies {
            entropy.add(row_total(&row, entropies));
        }
        if let Some(ratios) = ratios {
            match config.level {
                TrlLevel::Token => shares.add(held_of_row(&row, ratios, clip), row.kept()),
                TrlLevel::Sequence => shares.add(held_sequence(&row, ratios, clip), 1),
            }
        }
        if let (Some(old), Some(rollout)) = (input.old_log_probs, input.rollout_log_probs) {
            let gap = |old: R, rollout: R| (old - rollout).abs().widen();
            let [sum, scored] = fold_row(&row, [old, rollout], [], |[old, rollout]| {
                let gap = gap(old, rollout);
                ([], if gap.is_nan() { [0.0, 0.0] } else { [gap, 1.0] })
            });
            gaps.sum.add(sum);
            gaps.count += scored as u64;
            let pairs = row.of(old).iter().zip(row.of(rollout)).zip(row.keep).filter(|(_, &keep)| keep);
            for ((&old, &rollout), _) in pairs.filter(|((old, rollout), _)| !gap(**old, **rollout).is_nan()) {
                gaps.extremes.add(gap(old, rollout));
            }
        }
        match (input.weights, config.weight_level) {
            (Some(slice), TrlLevel::Token) => {
                weights.add_row(&row, slice);
            }
            (Some(slice), TrlLevel::Sequence) => {
                let first = row.keep.iter().position(|&keep| keep);
                first.into_iter().for_each(|slot| weights.add(row.of(slice)[slot].widen()));
            }
            _ => {}
        }
    }
    let mean = |sum: Sum| if batch.kept() == 0 { 0.0 } else { sum.value() / batch.kept() as f64 };
    found.kl = input.log_probs.and(input.ref_log_probs).map(|_| mean(kl));
    found.entropy = input.entropies.map(|_| mean(entropy));
    found.clip_ratio = ratios.map(|_| shares.ratios());
    found.sampling = input.old_log_probs.and(input.rollout_log_probs).map(|_| {
        let gaps = gaps.or_zero();
        SamplingMetrics { mean: gaps.mean, max: gaps.max }
    });
    found.importance_sampling_ratio = input.weights.map(|_| weights.or_zero());
}
