use crate::{
    error::{check_config, check_len, check_not_negative, check_positive, check_range, Result},
    layout::{Batch, Row},
    math::{clamp, exp},
    real::Real,
    reduce::fold_row,
    statistics::Divisor,
};

/// What the rollout formulas read, both action-aligned; `δ = old − rollout` is the log of the importance ratio.
#[derive(Clone, Copy, Debug)]
pub struct RolloutInput<'a, R> {
    /// Log-probabilities under the policy that sampled the tokens, as computed by the trainer.
    pub old_log_probs: &'a [R],
    /// Log-probabilities as reported by the sampler.
    pub rollout_log_probs: &'a [R],
}

impl<R> RolloutInput<'_, R> {
    pub(crate) fn check(&self, batch: &Batch<'_>) -> Result<()> {
        check_len("old_log_probs", self.old_log_probs, batch.tokens())?;
        check_len("rollout_log_probs", self.rollout_log_probs, batch.tokens())
    }
}

/// What one weight is computed from.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RolloutLevel {
    /// One per token: `e^δ`. Biased, small variance.
    #[default]
    Token,
    /// One per sequence, the product: `e^{Σ δ}`. Unbiased, large variance.
    Sequence,
    /// One per sequence, the geometric mean: `e^{Σ δ / n}`. slime and ROLL; verl 0.9.1 does not have it.
    Geometric,
}

/// What happens to a weight that is too large or too small.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightBound {
    /// Nothing.
    Unbounded,
    /// At most `upper`; no lower bound. verl 0.9.1 with one threshold (truncated importance sampling).
    Truncate {
        /// Positive.
        upper: f64,
    },
    /// Outside `[lower, upper]` the weight is 0. verl 0.9.1 with `"L_U"` (IcePop); TRL 1.16's `…_mask` modes.
    Zero {
        /// Not negative.
        lower: f64,
        /// Positive, not below `lower`.
        upper: f64,
    },
    /// At least `lower`, at most `upper`. OpenRLHF 0.11 `clip`; TRL 1.16's `…_truncate` modes.
    Clamp {
        /// Not negative.
        lower: f64,
        /// Positive, not below `lower`.
        upper: f64,
    },
}

#[cfg(feature = "serde")]
crate::spelling::tagged! {
    WeightBound { lower: f64, upper: f64 }
    "unbounded" Unbounded() = { Self::Unbounded }
    "truncate" Truncate(upper) = { Self::Truncate { upper } }
    "zero" Zero(lower, upper) = { Self::Zero { lower, upper } }
    "clamp" Clamp(lower, upper) = { Self::Clamp { lower, upper } }
}

impl WeightBound {
    pub(crate) fn check<R: Real>(self) -> Result<()> {
        match self {
            Self::Unbounded => Ok(()),
            Self::Truncate { upper } => check_positive::<R>("upper", upper),
            Self::Zero { lower, upper } | Self::Clamp { lower, upper } => {
                check_not_negative::<R>("lower", lower)?;
                check_config("upper", "positive and not below lower", upper, upper > 0.0 && upper >= lower)?;
                check_range::<R>("upper", upper)
            }
        }
    }

    /// The accepted band: `1/U … U` if only U is given.
    pub(crate) fn band(self) -> (f64, f64) {
        match self {
            Self::Unbounded => (0.0, f64::INFINITY),
            Self::Truncate { upper } => (1.0 / upper, upper),
            Self::Zero { lower, upper } | Self::Clamp { lower, upper } => (lower, upper),
        }
    }

    #[inline(always)]
    pub(crate) fn apply<R: Real>(self, weight: R) -> R {
        match self {
            Self::Unbounded => weight,
            Self::Truncate { upper } => clamp(weight, R::neg_infinity(), R::narrow(upper)),
            Self::Clamp { lower, upper } => clamp(weight, R::narrow(lower), R::narrow(upper)),
            // comparisons with NaN are false, so NaN propagates
            Self::Zero { lower, upper } if weight < R::narrow(lower) || weight > R::narrow(upper) => R::zero(),
            Self::Zero { .. } => weight,
        }
    }
}

/// Bound on the log of a ratio before it is exponentiated.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogBound {
    /// No bound. TRL 1.16, OpenRLHF 0.11.
    Unbounded,
    /// Clamped to ± this number; positive. verl 0.9.1: 20.
    At(f64),
}

#[cfg(feature = "serde")]
crate::spelling::nullable! { LogBound { Unbounded, At(f64) } }

/// How a token is treated that has no log-probability from the sampler (δ is NaN).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Unscored {
    /// NaN propagates to its weight and to every sum that includes it. verl 0.9.1.
    #[default]
    Nan,
    /// δ = 0: no correction. TRL 1.16.
    Ignore,
}

/// Whether the weights are divided by their mean, after the bounds.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum BatchNormalize {
    /// Not divided.
    #[default]
    Off,
    /// By the mean over tokens at token level, over sequences with kept tokens at the other levels; not if the mean is
    /// 1e-8 or less. verl 0.9.1.
    ByLevel,
    /// By the mean over tokens at every level; not if the mean is 1e-8 or less.
    Tokens,
}

/// The conventions of [`rollout_weights`](crate::rollout::rollout_weights).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct RolloutConfig {
    /// Default [`RolloutLevel::Token`].
    pub level: RolloutLevel,
    /// Default: truncated at 2.
    pub bound: WeightBound,
    /// Default ±20.
    pub log_bound: LogBound,
    /// Default off.
    pub normalize: BatchNormalize,
    /// Default [`Unscored::Nan`].
    pub unscored: Unscored,
    /// Divisor of the means; default the exact count.
    pub divisor: Divisor,
}

impl Default for RolloutConfig {
    fn default() -> Self {
        Self {
            level: RolloutLevel::Token,
            bound: WeightBound::Truncate { upper: 2.0 },
            log_bound: LogBound::At(20.0),
            normalize: BatchNormalize::Off,
            unscored: Unscored::Nan,
            divisor: Divisor::Count,
        }
    }
}

/// TRL's names for level and bound.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum SamplerMode {
    /// `token_truncate`: each token's ratio, clamped.
    TokenTruncate,
    /// `token_mask`: each token's ratio, 0 outside the band.
    TokenMask,
    /// `sequence_truncate`: the sequence's product, clamped.
    SequenceTruncate,
    /// `sequence_mask`: the sequence's product, 0 outside the band. TRL's own default.
    #[default]
    SequenceMask,
}

impl RolloutConfig {
    /// TRL 1.16's `vllm_importance_sampling_mode` with its `clip_min` (0 for none) and `clip_max` (+inf for none, 3 by
    /// default).
    pub const fn sampler_mode(mode: SamplerMode, lower: f64, upper: f64) -> Self {
        let (level, bound) = match mode {
            SamplerMode::TokenTruncate => (RolloutLevel::Token, WeightBound::Clamp { lower, upper }),
            SamplerMode::TokenMask => (RolloutLevel::Token, WeightBound::Zero { lower, upper }),
            SamplerMode::SequenceTruncate => (RolloutLevel::Sequence, WeightBound::Clamp { lower, upper }),
            SamplerMode::SequenceMask => (RolloutLevel::Sequence, WeightBound::Zero { lower, upper }),
        };
        Self {
            level,
            bound,
            log_bound: LogBound::Unbounded,
            normalize: BatchNormalize::Off,
            unscored: Unscored::Ignore,
            divisor: Divisor::Count,
        }
    }

    pub(crate) fn check<R: Real>(&self) -> Result<()> {
        self.bound.check::<R>()?;
        match self.log_bound {
            LogBound::Unbounded => Ok(()),
            LogBound::At(bound) => check_positive::<R>("log_bound", bound),
        }
    }

    /// δ of one token.
    #[inline(always)]
    pub(crate) fn log_ratio<R: Real>(&self, old: R, rollout: R) -> R {
        let delta = old - rollout;
        if self.unscored == Unscored::Ignore && delta.is_nan() {
            R::zero()
        } else {
            delta
        }
    }

    /// `e^δ` within the log bound, before the weight bound.
    #[inline(always)]
    pub(crate) fn ratio<R: Real>(&self, delta: R) -> R {
        exp(match self.log_bound {
            LogBound::Unbounded => delta,
            LogBound::At(bound) => clamp(delta, R::narrow(-bound), R::narrow(bound)),
        })
    }

    /// The log-ratio of a whole sequence: Σ δ, or its mean at the geometric level.
    #[inline(always)]
    pub(crate) fn sequence_log_ratio<R: Real>(&self, row: &Row<'_>, input: RolloutInput<'_, R>) -> f64 {
        let inputs = [input.old_log_probs, input.rollout_log_probs];
        let [sum] = fold_row(row, inputs, [], |[old, rollout]| ([], [self.log_ratio(old, rollout).widen()]));
        match (self.level, row.kept()) {
            (RolloutLevel::Geometric, kept) if kept > 0 => sum / self.divisor.of(kept as f64),
            _ => sum,
        }
    }
}
