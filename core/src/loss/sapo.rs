use super::{
    policy::{check_bound, evaluate, Ratio, Token, TokenLoss},
    Aggregate, AggregateMode, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_positive, Result},
    layout::Batch,
    math::exp,
    real::Real,
    statistics::Divisor,
};

/// How soft the gate of [`sapo`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct SapoConfig<'a> {
    /// τ where the advantage is positive; positive, default 1.
    pub tau_positive: f64,
    /// τ elsewhere; positive, default 1.05.
    pub tau_negative: f64,
    /// Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default 20 (verl; TRL has none).
    pub log_ratio_bound: Option<f64>,
    /// How token losses are aggregated; default equal weight per sequence, as in all frameworks.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_aggregate"))]
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
}

#[cfg(feature = "serde")]
crate::spelling::over_default! { read_aggregate: SapoConfig.aggregate as Aggregate<'static> }

impl Default for SapoConfig<'_> {
    fn default() -> Self {
        Self {
            tau_positive: 1.0,
            tau_negative: 1.05,
            log_ratio_bound: Some(20.0),
            aggregate: Aggregate { mode: AggregateMode::SequenceMeanTokenMean, ..Default::default() },
            divisor: Divisor::Count,
        }
    }
}

/// A soft gate in place of the clip: the further the ratio is from 1, the weaker the gradient, without a hard cutoff.
///
/// ```text
/// f(ρ) = (4/τ) σ(τ (ρ − 1))        loss = −Agg_t f(ρ_t) A_t        ∂loss/∂log π_t = −4 W_t σ (1 − σ) ρ_t A_t
/// ```
///
/// At ρ = 1 the gradient is that of the surrogate. There are no clip metrics; `kl` is the mean of `log π_old − log π`.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a τ or the bound is not positive; the errors of
/// [`aggregate`](super::aggregate).
///
/// **Reference.** Gao et al. 2025 (SAPO). verl 0.9.1 and TRL 1.16 (both per sequence; TRL without the bound); an
/// advantage of 0 takes the negative τ.
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
/// sapo(&batch, input, &SapoConfig::default(), &mut grad)?;
/// assert_eq!(grad, [-0.5, 0.0, 0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn sapo<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &SapoConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    check_positive::<R>("tau_positive", config.tau_positive)?;
    check_positive::<R>("tau_negative", config.tau_negative)?;
    let bound = check_bound(config.log_ratio_bound)?;
    let plan = config.aggregate.plan(batch)?;
    let formula = Gate { positive: R::narrow(config.tau_positive), negative: R::narrow(config.tau_negative), bound };
    Ok(evaluate(batch, input, &formula, &plan, config.divisor, grad))
}

#[derive(Clone, Copy)]
struct Gate<R> {
    positive: R,
    negative: R,
    bound: R,
}

impl<R: Real> TokenLoss<R> for Gate<R> {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let ratio = Ratio::new(log_prob - old_log_prob, self.bound);
        let tau = if advantage > R::zero() { self.positive } else { self.negative };
        let four = R::narrow(4.0);
        let tail = exp(-tau * (ratio.ratio - R::one()));
        let gate = R::one() / (R::one() + tail);
        // 1 − gate, without cancelling where the gate is nearly 1
        let rest = tail * gate;
        let slope = -four * gate * rest * ratio.ratio * advantage;
        // on either side of the gate an infinite ratio or tail meets a 0: gradient 0, not 0 · inf
        let slope = if gate == R::zero() || tail == R::zero() { R::zero() } else { slope };
        Token {
            loss: -(four / tau) * gate * advantage,
            slope: if ratio.beyond { R::zero() } else { slope },
            held: false,
            held_below: false,
            kl: -ratio.log_ratio,
        }
    }
}
