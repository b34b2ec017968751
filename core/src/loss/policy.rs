//! Shared by the policy losses: their input, the ratio of a token, and the loop over a batch for losses that are
//! computed token by token.

use super::aggregate::Plan;
use crate::{
    error::{check_len, check_positive, Result},
    layout::Batch,
    math::{clamp, exp},
    parallel::{in_order, Part, Work},
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::Divisor,
};

/// What the policy losses read, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct PolicyLossInput<'a, R> {
    /// Log-probabilities of the policy being trained; the gradient is taken with respect to these.
    pub log_probs: &'a [R],
    /// Log-probabilities of the policy that sampled; constants.
    pub old_log_probs: &'a [R],
    /// Advantages; constants.
    pub advantages: &'a [R],
    /// A weight for each token's loss, such as a rollout correction; constants. `None` gives weight 1.
    pub weights: Option<&'a [R]>,
}

impl<'a, R> PolicyLossInput<'a, R> {
    /// Every token has weight 1.
    pub const fn new(log_probs: &'a [R], old_log_probs: &'a [R], advantages: &'a [R]) -> Self {
        Self { log_probs, old_log_probs, advantages, weights: None }
    }

    pub(crate) fn check(&self, batch: &Batch<'_>, grad: &[R]) -> Result<()> {
        check_len("log_probs", self.log_probs, batch.tokens())?;
        check_len("old_log_probs", self.old_log_probs, batch.tokens())?;
        check_len("advantages", self.advantages, batch.tokens())?;
        if let Some(weights) = self.weights {
            check_len("weights", weights, batch.tokens())?;
        }
        check_len("grad", grad, batch.tokens())
    }
}

/// A policy loss and its metrics. The means are over the kept tokens of the current batch; 0 if there are none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// Share of tokens held by the main bound of the loss; each loss documents what this means.
    pub clip_fraction: f64,
    /// Share of tokens held by a second bound.
    pub clip_fraction_lower: f64,
    /// Mean of `log π_old − log π`, or what the loss reports instead.
    pub kl: f64,
}

/// The probability ratio of one token, its log-ratio bounded, and whether the bound makes the gradient 0.
#[derive(Clone, Copy)]
pub(crate) struct Ratio<R> {
    pub(crate) ratio: R,
    /// The log-ratio after the bound.
    pub(crate) log_ratio: R,
    /// Strictly beyond the bound.
    pub(crate) beyond: bool,
}

impl<R: Real> Ratio<R> {
    #[inline(always)]
    pub(crate) fn new(log_ratio: R, bound: R) -> Self {
        let beyond = (log_ratio > bound) | (log_ratio < -bound);
        let bounded = clamp(log_ratio, -bound, bound);
        Self { ratio: exp(bounded), log_ratio: bounded, beyond }
    }
}

/// The bound on log-ratios, checked; +inf if there is none.
pub(super) fn check_bound<R: Real>(bound: Option<f64>) -> Result<R> {
    match bound {
        Some(bound) => check_positive::<R>("log_ratio_bound", bound).map(|()| R::narrow(bound)),
        None => Ok(R::infinity()),
    }
}

/// The loss of one token.
pub(crate) struct Token<R> {
    pub(crate) loss: R,
    /// Its derivative with respect to the log-probability.
    pub(crate) slope: R,
    pub(crate) held: bool,
    pub(crate) held_below: bool,
    pub(crate) kl: R,
}

/// A loss that is computed token by token. `Copy`, so that the loop can keep its numbers in registers: behind a
/// reference LLVM would assume that stores to the gradient may change them.
pub(crate) trait TokenLoss<R>: Copy + Sync {
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R>;
}

impl<R: Real> Token<R> {
    /// Gradient and summed terms with rollout weight `omega`, which is a constant, and aggregation weight `w`.
    #[inline(always)]
    pub(super) fn weighed(self, omega: R, w: R) -> ([R; 1], [R; 4]) {
        let loss = self.loss * omega;
        let gradient = self.slope * omega * w;
        // a NaN loss has a NaN gradient, whatever the comparisons gave
        let gradient = if loss.is_nan() { loss } else { gradient };
        let count = |yes: bool| if yes { R::one() } else { R::zero() };
        ([gradient], [loss, count(self.held), count(self.held_below), self.kl])
    }
}

/// Aggregates a loss over a batch, writes its gradient and averages its metrics.
#[multiversion(avx512)]
pub(crate) fn evaluate<R: Real, F: TokenLoss<R>>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    formula: &F,
    plan: &Plan<'_>,
    divisor: Divisor,
    grad: &mut [R],
) -> PolicyLoss {
    let mut totals = [Sum::default(); 4];
    let loss_of_part = |part: &Part<'_>, [grad]: [&mut [R]; 1], report: &mut dyn FnMut([f64; 4])| {
        let formula = *formula;
        // without weights the log-probabilities are a placeholder
        let (omegas, weighs) = (input.weights.unwrap_or(input.log_probs), input.weights.is_some());
        let inputs = [input.log_probs, input.old_log_probs, input.advantages, omegas].map(|tokens| part.of(tokens));
        for (row, weight) in plan.rows_from(&part.batch, part.sequences.start) {
            let w = R::narrow(weight);
            let mut parts = fold_row(&row, inputs, [&mut *grad], |[new, old, advantage, omega]| {
                formula.token(new, old, advantage).weighed(if weighs { omega } else { R::one() }, w)
            });
            parts[0] *= weight;
            report(parts);
        }
    };
    in_order(batch, Work::ONE, [grad], loss_of_part, |parts: [f64; 4]| Sum::add_each(&mut totals, &parts));
    let [loss, held, held_below, kl] = Sum::values(&totals);
    let mean = |sum: f64| if batch.kept() == 0 { 0.0 } else { sum / divisor.of(batch.kept() as f64) };
    PolicyLoss { loss, clip_fraction: mean(held), clip_fraction_lower: mean(held_below), kl: mean(kl) }
}
