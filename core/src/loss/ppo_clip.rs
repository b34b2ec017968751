use super::{
    policy::{check_bound, evaluate, Ratio, Token, TokenLoss},
    Aggregate, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_config, check_not_negative, check_range, Result},
    layout::Batch,
    math::clamp,
    real::Real,
    statistics::Divisor,
};

/// A second bound, for large ratios that the first clip does not bound.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum DualClip {
    /// None. The PPO paper; TRL, OpenRLHF and NeMo-RL by default.
    #[default]
    Off,
    /// For negative advantages the loss is at most `c |A|`; `c > 1`. verl 0.9.1 (always, c = 3).
    NegativeOnly(f64),
    /// The unclipped ratio is at most δ for both signs. TRL 1.16 `delta`; the same for negative advantages if δ > 1 +
    /// ε⁺.
    BothSigns(f64),
}

/// Which log-ratio the reported KL averages if log-ratios are bounded.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ReportedKl {
    /// The bounded one. verl 0.9.1.
    #[default]
    Bounded,
    /// The one before the bound. OpenRLHF 0.11.
    Unbounded,
}

/// How [`ppo_clip`] clips and aggregates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct PpoConfig<'a> {
    /// ε⁻: ratios below `1 − clip_low` are clipped where the advantage is negative; default 0.2.
    pub clip_low: f64,
    /// ε⁺: ratios above `1 + clip_high` are clipped where the advantage is positive; default 0.2 (DAPO: 0.28).
    pub clip_high: f64,
    /// Default [`DualClip::Off`].
    pub dual_clip: DualClip,
    /// Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default 20 (verl, OpenRLHF; TRL has none).
    pub log_ratio_bound: Option<f64>,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
    /// Default [`ReportedKl::Bounded`].
    pub reported_kl: ReportedKl,
}

impl Default for PpoConfig<'_> {
    fn default() -> Self {
        Self {
            clip_low: 0.2,
            clip_high: 0.2,
            dual_clip: DualClip::Off,
            log_ratio_bound: Some(20.0),
            aggregate: Aggregate::default(),
            divisor: Divisor::Count,
            reported_kl: ReportedKl::Bounded,
        }
    }
}

impl PpoConfig<'_> {
    /// Everything except the aggregation.
    pub(crate) fn check<R: Real>(&self) -> Result<()> {
        Clipping::<R>::new(self).map(drop)
    }
}

/// Clipped surrogate loss. Returns the loss and its metrics, writes ∂loss/∂log_probs into `grad`.
///
/// ```text
/// ρ_t = exp(log π_t − log π_old,t)
/// loss = −Agg_t min(ρ_t A_t, clip(ρ_t, 1 − ε⁻, 1 + ε⁺) A_t)        ∂loss/∂log π_t = −W_t ρ_t A_t, or 0 if clipped
/// ```
///
/// **At a bound** the full gradient is kept; strictly beyond it, it is 0. (Autograd frameworks disagree there, even
/// between versions.) A token is clipped if `A ≥ 0` and `ρ > 1 + ε⁺`, or `A < 0` and `ρ < 1 − ε⁻`, or beyond the
/// [`DualClip`].
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a clip width is negative or not finite, the dual clip not above 1, or the
/// log-ratio bound not positive; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** Schulman et al. 2017, arXiv:1707.06347, eq. 7; dual clip: Ye et al. 2020, arXiv:1912.09729, eq. 5;
/// clip-higher: Yu et al. 2025, arXiv:2503.14476. verl 0.9.1 `vanilla` is `DualClip::NegativeOnly(3.0)` with
/// [`Divisor::CountPlusEpsilon`].
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let mut grad = [9.0; 4];
/// let result = ppo_clip(
///     &batch,
///     PolicyLossInput::new(
///         &[0.0, math::ln(2.0), f64::NAN, 0.0],        // the second token's ratio is 2
///         &[0.0, 0.0, f64::NAN, 0.0],
///         &[1.0, 3.0, f64::NAN, -1.0],
///     ),
///     &PpoConfig { clip_high: 0.5, ..Default::default() },
///     &mut grad,
/// )?;
/// assert_eq!(result.loss, -1.5);                                  // −(1 + 1.5 · 3 − 1) / 3
/// assert_eq!(grad, [-1.0 / 3.0, 0.0, 0.0, 1.0 / 3.0]);
/// assert_eq!(result.clip_fraction, 1.0 / 3.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn ppo_clip<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &PpoConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    let formula = Clipping::new(config)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(evaluate(batch, input, &formula, &plan, config.divisor, grad))
}

/// The checks of [`ppo_clip`] that need no data, for crates that compute it elsewhere.
#[doc(hidden)]
pub fn check_ppo_config<R: Real>(batch: &Batch<'_>, config: &PpoConfig<'_>) -> Result<()> {
    config.check::<R>()?;
    config.aggregate.plan(batch).map(drop)
}

#[derive(Clone, Copy)]
pub(super) struct Clipping<R> {
    pub(super) clip: Clip<R>,
    pub(super) bound: R,
    /// The bound on the log-ratio that is reported; +inf if none.
    pub(super) kl_bound: R,
}

impl<R: Real> Clipping<R> {
    fn new(config: &PpoConfig<'_>) -> Result<Self> {
        let clip = Clip::new(config.clip_low, config.clip_high, config.dual_clip)?;
        let bound = check_bound(config.log_ratio_bound)?;
        let kl_bound = if config.reported_kl == ReportedKl::Bounded { bound } else { R::infinity() };
        Ok(Self { clip, bound, kl_bound })
    }
}

impl<R: Real> TokenLoss<R> for Clipping<R> {
    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R) -> Token<R> {
        let log_ratio = log_prob - old_log_prob;
        let ratio = Ratio::new(log_ratio, self.bound);
        let token = self.clip.token(ratio.ratio, advantage);
        Token {
            loss: token.loss,
            slope: if token.flat | ratio.beyond { R::zero() } else { -advantage * ratio.ratio },
            held: token.held,
            held_below: token.held_by_dual,
            kl: -clamp(log_ratio, -self.kl_bound, self.kl_bound),
        }
    }
}

/// The bounds of the clip. Bounds that do not apply are ±inf rather than `None`, so that vectorised loops need no
/// branch.
#[derive(Clone, Copy)]
pub(crate) struct Clip<R> {
    low: R,
    high: R,
    /// The upper bound of the unclipped ratio, for both signs.
    free: R,
    /// The upper bound of the loss of a negative advantage, in units of its absolute value.
    cap: R,
    /// The ratio above which the loss no longer depends on it: for negative advantages, and for the others.
    flat: (R, R),
    /// The ratio above which the dual clip holds: for negative advantages, and for the others.
    dual: (R, R),
}

/// The effect of the clip on one token.
pub(crate) struct Clipped<R> {
    pub(crate) loss: R,
    /// Beyond the clip on the side where it holds.
    pub(crate) held: bool,
    /// Beyond the dual clip.
    pub(crate) held_by_dual: bool,
    /// The loss does not depend on the ratio here.
    pub(crate) flat: bool,
}

impl<R: Real> Clip<R> {
    pub(crate) fn new(clip_low: f64, clip_high: f64, dual_clip: DualClip) -> Result<Self> {
        check_not_negative::<R>("clip_low", clip_low)?;
        check_not_negative::<R>("clip_high", clip_high)?;
        let (dual, both_signs) = match dual_clip {
            DualClip::Off => (f64::INFINITY, false),
            DualClip::NegativeOnly(c) => (c, false),
            DualClip::BothSigns(delta) => (delta, true),
        };
        check_config(
            "dual_clip",
            "above 1 and finite",
            dual,
            dual > 1.0 && (dual_clip == DualClip::Off || dual.is_finite()),
        )?;
        check_range::<R>("dual_clip", dual)?;
        let (low, high, dual) = (R::narrow(1.0 - clip_low), R::narrow(1.0 + clip_high), R::narrow(dual));
        let never = R::infinity();
        Ok(if both_signs {
            // if the dual clip is inside the first one, the first one decides the slope between the two
            let (smaller, larger) = if dual < high { (dual, high) } else { (high, dual) };
            Self { low, high, free: dual, cap: never, flat: (larger, smaller), dual: (dual, dual) }
        } else {
            Self { low, high, free: never, cap: dual, flat: (dual, high), dual: (dual, never) }
        })
    }

    /// The ratio clamped to the first clip; NaN stays NaN.
    #[inline(always)]
    pub(super) fn inside(&self, ratio: R) -> R {
        clamp(ratio, self.low, self.high)
    }

    #[inline(always)]
    pub(crate) fn token(&self, ratio: R, advantage: R) -> Clipped<R> {
        let (negative, positive) = (advantage < R::zero(), advantage > R::zero());
        let least = if negative { self.low } else { R::neg_infinity() };
        let most = if positive { self.high } else { R::infinity() };
        let flat_above = if negative { self.flat.0 } else { self.flat.1 };
        let dual = if negative { self.dual.0 } else { self.dual.1 };
        let free = if ratio > self.free { self.free } else { ratio };
        let (plain, clipped) = (-advantage * free, -advantage * self.inside(ratio));
        let larger = if clipped > plain { clipped } else { plain };
        let cap = if negative { -advantage * self.cap } else { R::infinity() };
        Clipped {
            loss: if larger > cap { cap } else { larger },
            held: (free < least) | (free > most),
            held_by_dual: ratio > dual,
            flat: (ratio < least) | (ratio > flat_above),
        }
    }
}
