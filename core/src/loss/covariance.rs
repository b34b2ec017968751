//! Shared by [`clip_cov`](super::clip_cov) and [`kl_cov`](super::kl_cov): covariances, and a token loop that passes the
//! slot.

use super::{aggregate::Plan, PolicyLoss, PolicyLossInput};
use crate::{
    layout::Batch,
    real::Real,
    reduce::Sum,
    statistics::{CoMoments, Divisor},
};

/// `max(⌊ratio · N⌋, 1)`.
pub(crate) fn wanted(ratio: f64, kept: usize) -> usize {
    ((ratio * kept as f64) as usize).max(1)
}

/// Means of the kept advantages and log-probabilities.
#[derive(Clone, Copy)]
pub(crate) struct Center {
    pub(crate) advantage: f64,
    pub(crate) log_prob: f64,
}

impl Center {
    pub(super) fn of<R: Real>(batch: &Batch<'_>, input: &PolicyLossInput<'_, R>, divisor: Divisor) -> Self {
        let moments = CoMoments::of_two(batch, input.advantages, input.log_probs);
        let n = moments.count as f64;
        let shrink = if moments.count == 0 { 1.0 } else { n / divisor.of(n) };
        Self { advantage: moments.mean_x * shrink, log_prob: moments.mean_y * shrink }
    }

    pub(crate) fn covariance<R: Real>(&self, input: &PolicyLossInput<'_, R>, slot: usize) -> f64 {
        (input.advantages[slot].widen() - self.advantage) * (input.log_probs[slot].widen() - self.log_prob)
    }
}

/// Aggregates a loss that depends on the slot of a token, one token at a time in order. `token` returns loss, slope,
/// whether the token counts in `clip_fraction`, and its KL.
pub(super) fn walk<R: Real>(
    batch: &Batch<'_>,
    input: &PolicyLossInput<'_, R>,
    plan: &Plan<'_>,
    divisor: Divisor,
    grad: &mut [R],
    mut token: impl FnMut(usize, R, R) -> (R, R, bool, R),
) -> PolicyLoss {
    let (mut loss, mut counted, mut kl) = (Sum::default(), 0.0, Sum::default());
    for (row, weight) in plan.rows(batch) {
        let w = R::narrow(weight);
        let mut row_loss = Sum::default();
        for (t, &keep) in row.keep.iter().enumerate() {
            let slot = row.start + t;
            grad[slot] = R::zero();
            if keep {
                let omega = input.weights.map_or(R::one(), |weights| weights[slot]);
                let log_ratio = input.log_probs[slot] - input.old_log_probs[slot];
                let (value, slope, counts, divergence) = token(slot, log_ratio, input.advantages[slot]);
                grad[slot] = slope * omega * w;
                row_loss.add((value * omega).widen());
                counted += if counts { 1.0 } else { 0.0 };
                kl.add(divergence.widen());
            }
        }
        loss.add(weight * row_loss.value());
    }
    let mean = |sum: f64| if batch.kept() == 0 { 0.0 } else { sum / divisor.of(batch.kept() as f64) };
    PolicyLoss { loss: loss.value(), clip_fraction: mean(counted), clip_fraction_lower: 0.0, kl: mean(kl.value()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Mask};

    #[test]
    fn epsilon_in_the_divisor_draws_both_means_towards_zero() {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let input = PolicyLossInput::new(&[-2.0], &[-2.0], &[4.0]);
        let center = Center::of(&batch, &input, Divisor::CountPlusEpsilon);
        assert!(approx::relative_eq!(center.advantage, 4.0 / 1.00000001, max_relative = 1e-15), "{}", center.advantage);
        assert!(approx::relative_eq!(center.log_prob, -2.0 / 1.00000001, max_relative = 1e-15), "{}", center.log_prob);
    }
}
