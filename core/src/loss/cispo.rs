use super::{
    policy::{check_bound, evaluate, Ratio, Token, TokenLoss},
    Aggregate, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_not_negative, check_positive, Result},
    layout::Batch,
    real::Real,
    statistics::Divisor,
};

/// The bounds of the ratio in [`cispo`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CispoBounds {
    /// `1 − low … 1 + high`. verl 0.9.1, slime, NeMo-RL, SkyRL (2026-08).
    Relative {
        /// ε⁻, not negative.
        low: f64,
        /// ε⁺, not negative.
        high: f64,
    },
    /// At most `high`, without a lower bound. TRL 1.16, Liger (2026-08), where ε_high is this cap itself.
    Absolute {
        /// The largest ratio, positive.
        high: f64,
    },
}

#[cfg(feature = "serde")]
crate::spelling::tagged! {
    CispoBounds { low: f64, high: f64 }
    "relative" Relative(low, high) = { Self::Relative { low, high } }
    "absolute" Absolute(high) = { Self::Absolute { high } }
}

/// How [`cispo`] bounds and aggregates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct CispoConfig<'a> {
    /// Default `Relative { low: 0.2, high: 0.2 }`.
    pub bounds: CispoBounds,
    /// Log-ratios are bounded to ±this before the exponential; default 20 (verl; TRL has none).
    pub log_ratio_bound: Option<f64>,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
}

impl Default for CispoConfig<'_> {
    fn default() -> Self {
        Self {
            bounds: CispoBounds::Relative { low: 0.2, high: 0.2 },
            log_ratio_bound: Some(20.0),
            aggregate: Aggregate::default(),
            divisor: Divisor::Count,
        }
    }
}

/// A policy gradient weighted by the bounded ratio: clipping without losing a token's gradient.
///
/// ```text
/// ĉ_t = clip(ρ_t, low, high), a constant        loss = −Agg_t ĉ_t A_t log π_t        ∂loss/∂log π_t = −W_t ĉ_t A_t
/// ```
///
/// `clip_fraction` is the share of tokens whose ratio was bounded; with absolute bounds only those with `A > 0`.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a bound is outside its domain; the errors of
/// [`aggregate`](super::aggregate).
///
/// **Reference.** MiniMax-M1, arXiv:2506.13585, eq. 4. For the bounds of each framework see [`CispoBounds`]. TorchRL's
/// "CISPO" differentiates through the bound instead and has no log-probability factor: that is
/// [`ppo_clip`](super::ppo_clip) without the minimum.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [math::ln(2.0), f64::NAN, 0.0];      // ratio 2, bounded to 1.5
/// let old_log_probs = [0.0, f64::NAN, 0.0];
/// let advantages = [1.0, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &old_log_probs, &advantages);
/// let config = CispoConfig { bounds: CispoBounds::Relative { low: 0.5, high: 0.5 }, ..Default::default() };
/// let mut grad = [9.0; 3];
/// assert_eq!(cispo(&batch, input, &config, &mut grad)?.clip_fraction, 0.5);
/// assert_eq!(grad, [-0.75, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn cispo<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &CispoConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    let (low, high, positive_only) = match config.bounds {
        CispoBounds::Relative { low, high } => {
            check_not_negative::<R>("low", low)?;
            check_not_negative::<R>("high", high)?;
            (1.0 - low, 1.0 + high, false)
        }
        CispoBounds::Absolute { high } => {
            check_positive::<R>("high", high)?;
            (0.0, high, true)
        }
    };
    let bound = check_bound(config.log_ratio_bound)?;
    let plan = config.aggregate.plan(batch)?;
    let formula = Bounded { low: R::narrow(low), high: R::narrow(high), bound, positive_only };
    Ok(evaluate(batch, input, &formula, &plan, config.divisor, grad))
}

/// How [`tis_loss`] aggregates.
pub type TisLossConfig<'a> = super::ReinforceConfig<'a>;

/// A policy gradient weighted by the ratio, capped at 1.
///
/// ```text
/// ĉ_t = min(ρ_t, 1), a constant        loss = −Agg_t ĉ_t A_t log π_t        ∂loss/∂log π_t = −W_t ĉ_t A_t
/// ```
///
/// `clip_fraction` is the share of tokens with a ratio above 1.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`; the errors of
/// [`aggregate`](super::aggregate).
///
/// **Reference.** ROLL (2026-08) `tis`: truncated importance sampling as a loss.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [math::ln(2.0), f64::NAN, 0.0];
/// let old_log_probs = [0.0, f64::NAN, 0.0];
/// let advantages = [1.0, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &old_log_probs, &advantages);
/// let mut grad = [9.0; 3];
/// tis_loss(&batch, input, &TisLossConfig::default(), &mut grad)?;
/// assert_eq!(grad, [-0.5, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn tis_loss<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &TisLossConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    let plan = config.aggregate.plan(batch)?;
    let formula = Bounded { low: R::zero(), high: R::one(), bound: R::infinity(), positive_only: false };
    Ok(evaluate(batch, input, &formula, &plan, config.divisor, grad))
}

#[derive(Clone, Copy)]
struct Bounded<R> {
    low: R,
    high: R,
    bound: R,
    positive_only: bool,
}

impl<R: Real> TokenLoss<R> for Bounded<R> {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let ratio = Ratio::new(log_prob - old_log_prob, self.bound);
        let inside = if ratio.ratio < self.low { self.low } else { ratio.ratio };
        let inside = if inside > self.high { self.high } else { inside };
        let outside = (ratio.ratio < self.low) | (ratio.ratio > self.high);
        let slope = -inside * advantage;
        Token {
            loss: slope * log_prob,
            slope,
            held: outside & (!self.positive_only | (advantage > R::zero())),
            held_below: false,
            kl: -ratio.log_ratio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Mask};

    #[test]
    fn a_ratio_at_the_cap_is_not_clipped() {
        let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true; 2])).unwrap();
        let log_probs = [-0.5, -1.0];
        let mut grad = [9.0; 2];
        let fraction = |old: &[f64], grad: &mut [f64]| {
            let input = PolicyLossInput::new(&log_probs, old, &[1.0, 1.0]);
            tis_loss(&batch, input, &TisLossConfig::default(), grad).unwrap().clip_fraction
        };
        assert_eq!(fraction(&log_probs, &mut grad), 0.0);
        assert_eq!(fraction(&[-0.5, -1.5], &mut grad), 0.5);
    }
}
