use super::{
    policy::{evaluate, Token, TokenLoss},
    Aggregate, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_positive, Result},
    layout::Batch,
    real::Real,
    statistics::Divisor,
};

/// How strongly [`dro`] keeps the policy near the one that sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct DroConfig<'a> {
    /// The strength β of the quadratic penalty; positive. There is no customary value: verl requires one.
    pub beta: f64,
    /// How token losses are aggregated; default the token mean.
    #[cfg_attr(feature = "serde", serde(default))]
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    #[cfg_attr(feature = "serde", serde(default))]
    pub divisor: Divisor,
}

/// A policy gradient with a quadratic penalty on the distance from the policy that sampled.
///
/// ```text
/// d_t = log π_t − log π_old,t        loss = −Agg_t (A_t log π_t − ½ β d_t²)        ∂loss/∂log π_t = W_t (β d_t − A_t)
/// ```
///
/// The gradient vanishes where `d = A / β`: a target for each token rather than a bound. There are no clip metrics.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if β is not positive; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** Richemond et al. 2024 (DRO), arXiv:2405.19107; verl 0.9.1 `dro`; ROLL `kimi15` with β = 0.1.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = PolicyLossInput::new(
///     &[-0.5, f64::NAN, -1.0],
///     &[-1.0, f64::NAN, -1.0],
///     &[1.0, f64::NAN, 1.0],
/// );
/// let mut grad = [9.0; 3];
/// let config = DroConfig { beta: 2.0, aggregate: Aggregate::default(), divisor: Default::default() };
/// dro(&batch, input, &config, &mut grad)?;
/// assert_eq!(grad, [0.0, 0.0, -0.5]);      // the first token is where it should be
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn dro<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &DroConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    check_positive::<R>("beta", config.beta)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(evaluate(batch, input, &Quadratic { beta: R::narrow(config.beta) }, &plan, config.divisor, grad))
}

#[derive(Clone, Copy)]
struct Quadratic<R> {
    beta: R,
}

impl<R: Real> TokenLoss<R> for Quadratic<R> {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let d = log_prob - old_log_prob;
        Token {
            loss: -(log_prob * advantage - R::narrow(0.5) * self.beta * d * d),
            slope: self.beta * d - advantage,
            held: false,
            held_below: false,
            kl: -d,
        }
    }
}
