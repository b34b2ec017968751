use super::{aggregate::Plan, Aggregate, PolicyLossInput};
use crate::{
    error::{check_len, check_not_negative, Result},
    layout::Batch,
    math::exp,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
};

/// What [`topr`] reads.
#[derive(Clone, Copy, Debug)]
pub struct ToprInput<'a, R> {
    /// The inputs common to all policy losses, action-aligned.
    pub policy: PolicyLossInput<'a, R>,
    /// One score per sequence: above 0 for a good response.
    pub scores: &'a [R],
}

/// How [`topr`] weights good and bad responses.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ToprConfig<'a> {
    /// Weight of responses with a positive score; not negative, default 1.
    pub positive: f64,
    /// Weight of the others; not negative, default 1.
    pub negative: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for ToprConfig<'_> {
    fn default() -> Self {
        Self { positive: 1.0, negative: 1.0, aggregate: Aggregate::default() }
    }
}

/// Imitation of good responses, tapered off-policy learning from bad ones. Returns the loss, writes ∂loss/∂log_probs
/// into `grad`.
///
/// ```text
/// s_i > 0: L_t = −w₊ A_t log π_t        s_i ≤ 0: L_t = −w₋ min(ρ_t, 1) A_t log π_t, the ratio a constant
/// ```
///
/// **Alignment.** `scores` has one entry per sequence; the rest is action-aligned.
///
/// **Mask.** Dropped slots are never read and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a weight is negative; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** Le Roux et al. 2025 (TOPR), arXiv:2503.14286; ROLL (2026-08) `topr`.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, false, true, true]))?;
/// let log_probs = [-0.5, f64::NAN, math::ln(0.25), -1.0];
/// let old_log_probs = [-0.25, f64::NAN, math::ln(0.5), -1.0];
/// let advantages = [1.0, f64::NAN, -1.0, -1.0];
/// let policy = PolicyLossInput::new(&log_probs, &old_log_probs, &advantages);
/// let input = ToprInput { policy, scores: &[1.0, 0.0] };
/// let aggregate = Aggregate { mode: AggregateMode::TokenSum, ..Default::default() };
/// let mut grad = [9.0; 4];
/// topr(&batch, input, &ToprConfig { aggregate, ..Default::default() }, &mut grad)?;
/// assert_eq!(grad, [-1.0, 0.0, 0.5, 1.0]);      // the good token whole, the bad one by its ratio ½
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn topr<R: Real>(
    batch: &Batch<'_>,
    input: ToprInput<'_, R>,
    config: &ToprConfig<'_>,
    grad: &mut [R],
) -> Result<f64> {
    let ToprInput { policy: input, scores } = input;
    input.check(batch, grad)?;
    check_len("scores", scores, batch.sequences())?;
    check_not_negative::<R>("positive", config.positive)?;
    check_not_negative::<R>("negative", config.negative)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(tapered(batch, input, scores, config, &plan, grad))
}

#[multiversion]
fn tapered<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    scores: &[R],
    config: &ToprConfig<'_>,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> f64 {
    let mut loss = Sum::default();
    for ((row, weight), &score) in plan.rows(batch).zip(scores) {
        let w = R::narrow(weight);
        let good = score > R::zero();
        let factor = R::narrow(if good { config.positive } else { config.negative });
        // a NaN score is neither good nor bad
        let factor = if score.is_nan() { score } else { factor };
        let token = |new: R, old: R, advantage: R, omega: R| {
            let ratio = exp(new - old);
            let taper = if good | (ratio > R::one()) { R::one() } else { ratio };
            let slope = -factor * taper * advantage * omega;
            let loss = slope * new;
            // a NaN loss has a NaN gradient
            ([if loss.is_nan() { loss } else { slope * w }], [loss.widen()])
        };
        let [new, old, advantages] = [input.log_probs, input.old_log_probs, input.advantages];
        let [sum] = match input.weights {
            None => fold_row(&row, [new, old, advantages], [&mut *grad], |[new, old, a]| token(new, old, a, R::one())),
            Some(omega) => {
                fold_row(&row, [new, old, advantages, omega], [&mut *grad], |[new, old, a, o]| token(new, old, a, o))
            }
        };
        loss.add(weight * sum);
    }
    loss.value()
}
