use crate::{
    error::{check_config, check_finite, check_len, check_range, Result},
    real::Real,
};

/// What [`stop_properly_penalty`] reads; one entry per sequence.
#[derive(Clone, Copy, Debug)]
pub struct TruncatedInput<'a, R> {
    /// The scores before the penalty.
    pub scores: &'a [R],
    /// Whether the response was cut off by the length limit.
    pub truncated: &'a [bool],
}

/// How [`stop_properly_penalty`] treats truncated responses. There is no default: the penalty is off in OpenRLHF.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct StopProperlyConfig {
    /// c; finite and at most 1. From 0 to 1 it multiplies the score, below 0 it replaces the score.
    pub coefficient: f64,
}

/// Scores with a penalty for responses that were cut off instead of ending.
///
/// ```text
/// out_i = c s_i  (0 ≤ c ≤ 1)    or    c  (c < 0)        where truncated, else s_i
/// ```
///
/// **Alignment.** One entry per sequence.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `truncated` or `out` does not have one entry per score;
/// [`Error::Config`](crate::Error::Config) if the coefficient is above 1 or not finite.
///
/// **Reference.** OpenRLHF 0.11 `stop_properly_penalty_coef`; NeMo-RL takes `[0, 1]` only.
///
/// # Example
///
/// ```
/// use tokenwise::reward::*;
///
/// let input = TruncatedInput { scores: &[1.0, 1.0], truncated: &[false, true] };
/// let mut out = [9.0; 2];
/// stop_properly_penalty(input, &StopProperlyConfig { coefficient: 0.25 }, &mut out)?;
/// assert_eq!(out, [1.0, 0.25]);
/// stop_properly_penalty(input, &StopProperlyConfig { coefficient: -1.0 }, &mut out)?;
/// assert_eq!(out, [1.0, -1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn stop_properly_penalty<R: Real>(
    input: TruncatedInput<'_, R>,
    config: &StopProperlyConfig,
    out: &mut [R],
) -> Result<()> {
    let coefficient = config.coefficient;
    check_len("truncated", input.truncated, input.scores.len())?;
    check_len("out", out, input.scores.len())?;
    check_config("coefficient", "finite and at most 1", coefficient, coefficient.is_finite() && coefficient <= 1.0)?;
    check_range::<R>("coefficient", coefficient)?;
    let c = R::narrow(coefficient);
    for ((out, &score), &truncated) in out.iter_mut().zip(input.scores).zip(input.truncated) {
        *out = match truncated {
            true if coefficient < 0.0 => c,
            true => c * score,
            false => score,
        };
    }
    Ok(())
}

/// What [`missing_eos_penalty`] reads; one entry per sequence.
#[derive(Clone, Copy, Debug)]
pub struct MissingEosInput<'a, R> {
    /// The scores before the penalty.
    pub scores: &'a [R],
    /// Whether the response contains an end-of-sequence token.
    pub ended: &'a [bool],
}

/// What [`missing_eos_penalty`] subtracts. There is no default: the penalty is off in TRL.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct MissingEosConfig {
    /// Penalty for a response without an end-of-sequence token; finite.
    pub penalty: f64,
}

/// Scores with a fixed penalty for responses without an end-of-sequence token.
///
/// ```text
/// out_i = s_i − penalty   without an end, else s_i
/// ```
///
/// **Alignment.** One entry per sequence.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `ended` or `out` does not have one entry per score;
/// [`Error::Config`](crate::Error::Config) if the penalty is not finite.
///
/// **Reference.** TRL 1.16 PPO `missing_eos_penalty` (off by default).
///
/// # Example
///
/// ```
/// use tokenwise::reward::*;
///
/// let mut out = [9.0; 2];
/// let input = MissingEosInput { scores: &[1.0, 1.0], ended: &[true, false] };
/// missing_eos_penalty(input, &MissingEosConfig { penalty: 0.5 }, &mut out)?;
/// assert_eq!(out, [1.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn missing_eos_penalty<R: Real>(
    input: MissingEosInput<'_, R>,
    config: &MissingEosConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("ended", input.ended, input.scores.len())?;
    check_len("out", out, input.scores.len())?;
    check_finite::<R>("penalty", config.penalty)?;
    let penalty = R::narrow(config.penalty);
    for ((out, &score), &ended) in out.iter_mut().zip(input.scores).zip(input.ended) {
        *out = if ended { score } else { score - penalty };
    }
    Ok(())
}

/// How [`reward_scale_clip`] maps scores to a range. There is no default.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RewardScaleConfig {
    /// Clamped to `low … high`. ROLL `reward_clip`, TRL 1.16 `reward_clip_range`.
    Clip {
        /// Not NaN.
        low: f64,
        /// Not below `low`.
        high: f64,
    },
    /// `(s + bias) · scale`, then clamped to ±`bound`. AReaL: bound 20.
    ShiftScaleClip {
        /// Finite.
        bias: f64,
        /// Finite.
        scale: f64,
        /// Not negative.
        bound: f64,
    },
    /// Clamped to `from`, then mapped linearly onto `to`. NeMo-RL.
    Map {
        /// Two finite numbers, the second above the first.
        from: (f64, f64),
        /// Two finite numbers.
        to: (f64, f64),
    },
}

#[cfg(feature = "serde")]
crate::spelling::tagged! {
    RewardScaleConfig {
        low: f64, high: f64, bias: f64, scale: f64, bound: f64,
        from_low: f64, from_high: f64, to_low: f64, to_high: f64
    }
    "clip" Clip(low, high) = { Self::Clip { low, high } }
    "shift-scale-clip" ShiftScaleClip(bias, scale, bound) = { Self::ShiftScaleClip { bias, scale, bound } }
    "map" Map(from_low, from_high, to_low, to_high) = {
        Self::Map { from: (from_low, from_high), to: (to_low, to_high) }
    }
}

/// Scores clipped or rescaled to a range.
///
/// ```text
/// Clip: clip(s, low, high)      ShiftScaleClip: clip((s + bias) scale, ±bound)
/// Map: t₀ + (clip(s, f₀, f₁) − f₀) (t₁ − t₀) / (f₁ − f₀)
/// ```
///
/// Returns the share of scores that were clipped. To scale *token* rewards to variance 1, use
/// [`whiten`](crate::advantage::whiten): TRL 1.16 PPO does so without shifting the mean.
///
/// **Alignment.** One entry per sequence.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `out` does not have one entry per score;
/// [`Error::Config`](crate::Error::Config) if a number of the config is outside its domain.
///
/// **Reference.** Frameworks: [`RewardScaleConfig`]. The share is ROLL's `critic/reward_clip_frac`.
///
/// # Example
///
/// ```
/// use tokenwise::reward::*;
///
/// let mut out = [9.0; 4];
/// let config = RewardScaleConfig::Map { from: (0.0, 4.0), to: (-1.0, 1.0) };
/// assert_eq!(reward_scale_clip(&[-1.0, 0.0, 1.0, 4.0], &config, &mut out)?, 0.25);
/// assert_eq!(out, [-1.0, -1.0, -0.5, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn reward_scale_clip<R: Real>(scores: &[R], config: &RewardScaleConfig, out: &mut [R]) -> Result<f64> {
    check_len("out", out, scores.len())?;
    let (bias, factor, low, high) = match *config {
        RewardScaleConfig::Clip { low, high } => (0.0, 1.0, low, high),
        RewardScaleConfig::ShiftScaleClip { bias, scale, bound } => (bias, scale, -bound, bound),
        RewardScaleConfig::Map { from: (low, high), .. } => (0.0, 1.0, low, high),
    };
    check_finite::<R>("bias", bias)?;
    check_finite::<R>("scale", factor)?;
    check_config("high", "not below low", high, high >= low)?;
    // a symmetric bound is named `high`
    check_range::<R>("high", high)?;
    check_range::<R>("low", low)?;
    if let RewardScaleConfig::Map { from, to } = *config {
        check_config(
            "from",
            "finite and ascending",
            from.1,
            from.0.is_finite() && from.1.is_finite() && from.1 > from.0,
        )?;
        check_finite::<R>("to", to.0)?;
        check_finite::<R>("to", to.1)?;
    }
    let mut held = 0_u64;
    for (out, score) in out.iter_mut().zip(scores) {
        let moved = (score.widen() + bias) * factor;
        held += u64::from(moved < low || moved > high);
        let bounded = if moved < low { low } else { moved };
        let bounded = if bounded > high { high } else { bounded };
        *out = R::narrow(match *config {
            RewardScaleConfig::Map { from, to } => to.0 + (bounded - from.0) * (to.1 - to.0) / (from.1 - from.0),
            _ => bounded,
        });
    }
    Ok(if scores.is_empty() { 0.0 } else { held as f64 / scores.len() as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales() {
        let mut out = [0.0; 2];
        let areal = RewardScaleConfig::ShiftScaleClip { bias: -0.5, scale: 10.0, bound: 20.0 };
        assert_eq!(reward_scale_clip(&[1.0, 9.0], &areal, &mut out), Ok(0.5));
        assert_eq!(out, [5.0, 20.0]);
        for bad in [
            RewardScaleConfig::Clip { low: 1.0, high: 0.0 },
            RewardScaleConfig::Clip { low: f64::NAN, high: 0.0 },
            RewardScaleConfig::Map { from: (1.0, 1.0), to: (0.0, 1.0) },
            RewardScaleConfig::ShiftScaleClip { bias: f64::NAN, scale: 1.0, bound: 1.0 },
        ] {
            assert!(reward_scale_clip(&[1.0, 9.0], &bad, &mut out).is_err(), "{bad:?}");
        }
        assert_eq!(out, [5.0, 20.0]);
    }

    #[test]
    fn penalties_refuse_what_is_no_coefficient() {
        let input = TruncatedInput { scores: &[1.0], truncated: &[true] };
        for coefficient in [1.5, f64::NAN] {
            assert!(stop_properly_penalty(input, &StopProperlyConfig { coefficient }, &mut [0.0]).is_err());
        }
    }
}
