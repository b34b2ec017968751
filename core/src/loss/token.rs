//! The one walk behind every policy loss that is a function of its own token.

use super::{aggregate::Plan, PolicyLossInput};
use crate::{
    layout::Batch,
    parallel::{in_order, Each, Part},
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::Divisor,
};

/// A policy loss and what is logged beside it. The means are over the kept tokens of the batch at hand; 0 if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// Share of tokens that the loss holds back on the usual side; each loss says what that means for it.
    pub clip_fraction: f64,
    /// Share of tokens held back by a second bound.
    pub clip_fraction_lower: f64,
    /// Mean of `log π_old − log π`, or what the loss reports in its place.
    pub kl: f64,
}

/// The loss of one token.
pub(crate) struct Token<R> {
    pub(crate) loss: R,
    /// Its derivative by the log-probability.
    pub(crate) slope: R,
    pub(crate) held: bool,
    pub(crate) held_below: bool,
    pub(crate) kl: R,
}

/// A loss that knows one token at a time. Copied into the walk, so that its numbers are known not to change on the way.
pub(crate) trait TokenLoss<R>: Copy + Sync {
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R>;
}

/// Aggregates a loss over a batch and writes its gradient, by the one walk for all losses.
#[cfg(compact)]
pub(crate) fn evaluate<R: Real, F: TokenLoss<R>>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    formula: &F,
    plan: &Plan<'_>,
    divisor: Divisor,
    grad: &mut [R],
) -> PolicyLoss {
    evaluate_any(batch, input, &Any(formula), plan, divisor, grad)
}

/// A loss behind a pointer.
#[cfg(compact)]
struct Any<'a, R>(&'a (dyn AnyLoss<R> + Sync));

#[cfg(compact)]
trait AnyLoss<R> {
    fn any_token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R>;
}

#[cfg(compact)]
impl<R, F: TokenLoss<R>> AnyLoss<R> for F {
    fn any_token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        self.token(log_prob, old_log_prob, advantage)
    }
}

#[cfg(compact)]
impl<R> Clone for Any<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

#[cfg(compact)]
impl<R> Copy for Any<'_, R> {}

#[cfg(compact)]
impl<R> TokenLoss<R> for Any<'_, R> {
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        self.0.any_token(log_prob, old_log_prob, advantage)
    }
}

#[cfg(not(compact))]
pub(crate) use evaluate_any as evaluate;

/// Aggregates a loss over a batch and writes its gradient.
pub(crate) fn evaluate_any<R: Real, F: TokenLoss<R>>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    formula: &F,
    plan: &Plan<'_>,
    divisor: Divisor,
    grad: &mut [R],
) -> PolicyLoss {
    let mut totals = [Sum::default(); 4];
    in_order(
        batch,
        Each::ONE,
        [grad],
        |part, [grad], report| walk(part, input.part(part), formula, plan, grad, report),
        |parts: [f64; 4]| Sum::add_each(&mut totals, &parts),
    );
    let [loss, held, held_below, kl] = Sum::values(&totals);
    let mean = |sum: f64| if batch.kept() == 0 { 0.0 } else { sum / divisor.of(batch.kept() as f64) };
    PolicyLoss { loss, clip_fraction: mean(held), clip_fraction_lower: mean(held_below), kl: mean(kl) }
}

/// A rollout weight multiplies loss and gradient of its token; it is a constant.
#[cfg_attr(not(compact), inline(always))]
pub(super) fn weighed<R: Real>(token: Token<R>, omega: R, w: R) -> ([R; 1], [R; 4]) {
    let loss = token.loss * omega;
    let gradient = token.slope * omega * w;
    // a NaN loss has a NaN gradient, whatever the comparisons said
    let gradient = if loss.is_nan() { loss } else { gradient };
    let count = |yes: bool| if yes { R::one() } else { R::zero() };
    ([gradient], [loss, count(token.held), count(token.held_below), token.kl])
}

multiversion! { avx512:
    fn walk<R: Real, F: TokenLoss<R>>(
        part: &Part<'_>, input: PolicyLossInput<'_, R>, formula: &F, plan: &Plan<'_>, grad: &mut [R], report: &mut dyn FnMut([f64; 4]),
    ) -> () {
        let formula = *formula;
        for (row, weight) in plan.rows_from(&part.batch, part.rows.start) {
            let w = R::narrow(weight);
            let [new, old, advantages] = [input.log_probs, input.old_log_probs, input.advantages];
            let mut parts = match input.weights {
                None => fold_row(&row, [new, old, advantages], [&mut *grad], |[new, old, advantage]| {
                    weighed(formula.token(new, old, advantage), R::one(), w)
                }),
                Some(weights) => fold_row(&row, [new, old, advantages, weights], [&mut *grad], |[new, old, advantage, omega]| {
                    weighed(formula.token(new, old, advantage), omega, w)
                }),
            };
            parts[0] *= weight;
            report(parts);
        }
    }
}
