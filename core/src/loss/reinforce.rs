use super::{
    policy::{evaluate, Token, TokenLoss},
    Aggregate, PolicyLoss, PolicyLossInput,
};
use crate::{error::Result, layout::Batch, real::Real, statistics::Divisor};

/// How [`reinforce`] aggregates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ReinforceConfig<'a> {
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
}

/// The plain policy gradient as a loss. Returns the loss, writes ∂loss/∂log_probs into `grad`.
///
/// ```text
/// loss = −Agg_t A_t log π_t        ∂loss/∂log π_t = −W_t A_t
/// ```
///
/// Only the gradient is meaningful; the value of the loss is not. Clip metrics are 0; `kl` is the mean of
/// `log π_old − log π`.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`; the errors of
/// [`aggregate`](super::aggregate).
///
/// **Reference.** Williams 1992; verl 0.9.1 `gpg`, and `reinforce` of its bypass mode with rollout `weights`.
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
/// assert_eq!(reinforce(&batch, input, &ReinforceConfig::default(), &mut grad)?.loss, 0.0);     // (0.5 − 0.5) / 2
/// assert_eq!(grad, [-0.5, 0.0, 0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn reinforce<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &ReinforceConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(evaluate(batch, input, &Plain, &plan, config.divisor, grad))
}

#[derive(Clone, Copy)]
pub(super) struct Plain;

impl<R: Real> TokenLoss<R> for Plain {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        Token {
            loss: -advantage * log_prob,
            slope: -advantage,
            held: false,
            held_below: false,
            kl: old_log_prob - log_prob,
        }
    }
}
