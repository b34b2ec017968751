use super::{
    token::{evaluate, Token, TokenLoss},
    Aggregate,
};
use crate::{
    error::{check_len, check_positive, Result},
    layout::Batch,
    math::{clamp, exp},
    parallel::Part,
    real::Real,
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
    /// A weight for each token's loss, such as a rollout correction; constants. `None` weighs every token 1.
    pub weights: Option<&'a [R]>,
}

impl<'a, R> PolicyLossInput<'a, R> {
    pub(super) fn check(&self, batch: &Batch<'_>, grad: &[R]) -> Result<()> {
        check_len("log_probs", self.log_probs, batch.tokens())?;
        check_len("old_log_probs", self.old_log_probs, batch.tokens())?;
        check_len("advantages", self.advantages, batch.tokens())?;
        if let Some(weights) = self.weights {
            check_len("weights", weights, batch.tokens())?;
        }
        check_len("grad", grad, batch.tokens())
    }

    /// What a part of the batch reads.
    pub(super) fn part(&self, part: &Part<'_>) -> Self
    where
        R: Copy,
    {
        let of = |tokens: &'a [R]| part.of(tokens);
        Self {
            log_probs: of(self.log_probs),
            old_log_probs: of(self.old_log_probs),
            advantages: of(self.advantages),
            weights: self.weights.map(of),
        }
    }
}

/// The probability ratio of one token, its log-ratio bounded, and whether the bound took the gradient away.
#[derive(Clone, Copy)]
pub(crate) struct Ratio<R> {
    pub(crate) ratio: R,
    /// The log-ratio after the bound.
    pub(crate) log_ratio: R,
    /// Strictly beyond the bound.
    pub(crate) beyond: bool,
}

impl<R: Real> Ratio<R> {
    #[cfg_attr(not(compact), inline(always))]
    pub(crate) fn new(log_ratio: R, bound: R) -> Self {
        let beyond = (log_ratio > bound) | (log_ratio < -bound);
        let bounded = clamp(log_ratio, -bound, bound);
        Self { ratio: exp(bounded), log_ratio: bounded, beyond }
    }
}

/// The bound on log-ratios as a number of the type; without one, +inf.
pub(super) fn check_bound(bound: Option<f64>) -> Result<f64> {
    match bound {
        Some(bound) => check_positive("log_ratio_bound", bound).map(|()| bound),
        None => Ok(f64::INFINITY),
    }
}

/// How [`surrogate`] is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SurrogateConfig<'a> {
    /// Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default none.
    pub log_ratio_bound: Option<f64>,
    /// How tokens become one number; default their mean.
    pub aggregate: Aggregate<'a>,
}

/// The surrogate objective as a loss: what TRPO maximises and PPO clips. Returns the loss, writes ∂loss/∂log_probs into `grad`.
///
/// ```text
/// ρ_t = exp(log π_t − log π_old,t)        loss = −Agg_t ρ_t A_t        ∂loss/∂log π_t = −W_t ρ_t A_t
/// ```
///
/// At the first step ρ = 1: the loss is minus the mean advantage, and the gradient that of REINFORCE.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`; [`Error::Config`](crate::Error::Config) if the
/// bound is not positive; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** Schulman et al. 2015, arXiv:1502.05477, eq. 14 (there maximised, and over episodes).
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-0.5, f64::NAN, -1.0];
/// let input = PolicyLossInput { log_probs: &log_probs, old_log_probs: &log_probs, advantages: &[1.0, f64::NAN, -0.5], weights: None };
/// let mut grad = [9.0; 3];
/// assert_eq!(surrogate(&batch, input, &SurrogateConfig::default(), &mut grad)?, -0.25);
/// assert_eq!(grad, [-0.5, 0.0, 0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn surrogate<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &SurrogateConfig<'_>,
    grad: &mut [R],
) -> Result<f64> {
    input.check(batch, grad)?;
    let bound = check_bound(config.log_ratio_bound)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(evaluate(batch, input, &Surrogate { bound: R::narrow(bound) }, &plan, Divisor::Count, grad).loss)
}

#[derive(Clone, Copy)]
pub(super) struct Surrogate<R> {
    pub(super) bound: R,
}

impl<R: Real> TokenLoss<R> for Surrogate<R> {
    #[cfg_attr(not(compact), inline(always))]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let ratio = Ratio::new(log_prob - old_log_prob, self.bound);
        let loss = -advantage * ratio.ratio;
        let slope = if ratio.beyond { R::zero() } else { loss };
        Token { loss, slope, held: ratio.beyond, held_below: false, kl: -ratio.log_ratio }
    }
}
