use super::{
    policy::{check_bound, evaluate, Ratio, Token, TokenLoss},
    Aggregate, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_not_negative, check_positive, Result},
    layout::Batch,
    math::{exp, ln},
    real::Real,
    statistics::Divisor,
};

/// How far [`dppo_tv`] and [`dppo_kl`] let the probability of a token move. The bounds are divergences, not ratio
/// widths.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct DppoConfig<'a> {
    /// The bound where the advantage is not positive; not negative, default 0.2.
    pub clip_low: f64,
    /// The bound where the advantage is positive; not negative, default 0.2.
    pub clip_high: f64,
    /// Cap of the ratio; positive, default 3 (verl's code falls back to 20, but its actor config always sets 3).
    pub ratio_cap: f64,
    /// Log-ratios are bounded to ±this before the exponential; default 20.
    pub log_ratio_bound: Option<f64>,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
}

impl Default for DppoConfig<'_> {
    fn default() -> Self {
        Self {
            clip_low: 0.2,
            clip_high: 0.2,
            ratio_cap: 3.0,
            log_ratio_bound: Some(20.0),
            aggregate: Aggregate::default(),
            divisor: Divisor::Count,
        }
    }
}

/// A policy gradient that drops tokens whose probability has moved too far in the direction of the update, by total
/// variation.
///
/// ```text
/// p = π_t, q = π_old,t        kept: A > 0 ? p − q ≤ ε⁺ : p − q ≥ −ε⁻        w = min(ρ, cap), a constant
/// loss = −Agg_t A_t w_t log π_t [kept]        ∂loss/∂log π_t = −W_t A_t w_t [kept]
/// ```
///
/// Unlike a ratio, `p − q` does not penalise rare tokens for small absolute changes. `clip_fraction` is the share of
/// tokens not kept, `clip_fraction_lower` the share kept with a capped ratio.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a bound is negative, or cap or log-ratio bound not positive; the errors
/// of [`aggregate`](super::aggregate).
///
/// **Reference.** verl 0.9.1 `dppo_tv`. SkyRL (2026-08) differentiates through the ratio instead of the
/// log-probability.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [math::ln(0.75), f64::NAN, math::ln(0.5)];
/// let old_log_probs = [math::ln(0.5), f64::NAN, math::ln(0.5)];      // the first moved up by 0.25
/// let advantages = [1.0, f64::NAN, 1.0];
/// let input = PolicyLossInput::new(&log_probs, &old_log_probs, &advantages);
/// let mut grad = [9.0; 3];
/// assert_eq!(dppo_tv(&batch, input, &DppoConfig::default(), &mut grad)?.clip_fraction, 0.5);
/// assert_eq!(grad, [0.0, 0.0, -0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn dppo_tv<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &DppoConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    let bounds = Bounds::check(batch, &input, config, grad)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(evaluate(batch, input, &TotalVariation(bounds), &plan, config.divisor, grad))
}

/// A policy gradient that drops tokens whose probability has moved too far in the direction of the update, by binary
/// KL.
///
/// ```text
/// b = q (log q − log p) + (1 − q) ln((1 − q + 1e-8) / (1 − p + 1e-8))        p = π_t, q = π_old,t
/// kept: A > 0 ? (b ≤ ε⁺ or p ≤ q) : (b ≤ ε⁻ or p ≥ q)        w = min(ρ, cap), a constant
/// loss = −Agg_t A_t w_t log π_t [kept]        ∂loss/∂log π_t = −W_t A_t w_t [kept]
/// ```
///
/// `clip_fraction` is the share of tokens not kept, `clip_fraction_lower` the share kept with a capped ratio.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** As [`dppo_tv`].
///
/// **Reference.** verl 0.9.1 `dppo_kl`. An advantage of 0 follows the negative rule.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [math::ln(0.75), f64::NAN, math::ln(0.25)];
/// let old_log_probs = [math::ln(0.25), f64::NAN, math::ln(0.25)];
/// let advantages = [1.0, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &old_log_probs, &advantages);
/// let mut grad = [9.0; 3];
/// assert_eq!(dppo_kl(&batch, input, &DppoConfig::default(), &mut grad)?.clip_fraction, 0.5);
/// assert_eq!(grad, [0.0, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn dppo_kl<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &DppoConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    let bounds = Bounds::check(batch, &input, config, grad)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(evaluate(batch, input, &BinaryKl(bounds), &plan, config.divisor, grad))
}

#[derive(Clone, Copy)]
struct Bounds<R> {
    low: R,
    high: R,
    cap: R,
    log_ratio: R,
}

impl<R: Real> Bounds<R> {
    fn check(batch: &Batch<'_>, input: &PolicyLossInput<'_, R>, config: &DppoConfig<'_>, grad: &[R]) -> Result<Self> {
        input.check(batch, grad)?;
        check_not_negative::<R>("clip_low", config.clip_low)?;
        check_not_negative::<R>("clip_high", config.clip_high)?;
        check_positive::<R>("ratio_cap", config.ratio_cap)?;
        Ok(Self {
            low: R::narrow(config.clip_low),
            high: R::narrow(config.clip_high),
            cap: R::narrow(config.ratio_cap),
            log_ratio: check_bound(config.log_ratio_bound)?,
        })
    }

    /// The weighted policy gradient of one token, if it is kept.
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R, keep: bool) -> Token<R> {
        let ratio = Ratio::new(log_prob - old_log_prob, self.log_ratio);
        let capped = ratio.ratio > self.cap;
        let weight = if capped { self.cap } else { ratio.ratio };
        let slope = -advantage * weight;
        let loss = slope * log_prob;
        // comparisons with NaN are false, so a NaN loss must be propagated by hand
        let kept = keep | loss.is_nan();
        Token {
            loss: if kept { loss } else { R::zero() },
            slope: if kept { slope } else { R::zero() },
            held: !kept,
            held_below: capped & keep,
            kl: -ratio.log_ratio,
        }
    }
}

#[derive(Clone, Copy)]
struct TotalVariation<R>(Bounds<R>);

impl<R: Real> TokenLoss<R> for TotalVariation<R> {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let moved = exp(log_prob) - exp(old_log_prob);
        let positive = advantage > R::zero();
        let keep = (positive & (moved <= self.0.high)) | (!positive & (moved >= -self.0.low));
        self.0.token(log_prob, old_log_prob, advantage, keep)
    }
}

#[derive(Clone, Copy)]
struct BinaryKl<R>(Bounds<R>);

impl<R: Real> TokenLoss<R> for BinaryKl<R> {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let (p, q, one, tiny) = (exp(log_prob), exp(old_log_prob), R::one(), R::narrow(1e-8));
        let kl = q * (old_log_prob - log_prob) + (one - q) * ln((one - q + tiny) / (one - p + tiny));
        let positive = advantage > R::zero();
        let keep = (positive & ((kl <= self.0.high) | (p <= q))) | (!positive & ((kl <= self.0.low) | (p >= q)));
        self.0.token(log_prob, old_log_prob, advantage, keep)
    }
}
