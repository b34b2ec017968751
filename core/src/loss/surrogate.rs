use super::{
    policy::{check_bound, evaluate, PolicyLossInput, Ratio, Token, TokenLoss},
    Aggregate,
};
use crate::{error::Result, layout::Batch, real::Real, statistics::Divisor};

/// How [`surrogate`] is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct SurrogateConfig<'a> {
    /// Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default none.
    pub log_ratio_bound: Option<f64>,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

/// The surrogate objective as a loss: maximised by TRPO, clipped by PPO. Returns the loss, writes ∂loss/∂log_probs into
/// `grad`.
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
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if the bound is not positive; the errors of [`aggregate`](super::aggregate).
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
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, -0.5]);
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
    Ok(evaluate(batch, input, &Surrogate { bound }, &plan, Divisor::Count, grad).loss)
}

#[derive(Clone, Copy)]
pub(super) struct Surrogate<R> {
    pub(super) bound: R,
}

impl<R: Real> TokenLoss<R> for Surrogate<R> {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let ratio = Ratio::new(log_prob - old_log_prob, self.bound);
        let loss = -advantage * ratio.ratio;
        let slope = if ratio.beyond { R::zero() } else { loss };
        Token { loss, slope, held: ratio.beyond, held_below: false, kl: -ratio.log_ratio }
    }
}
