use crate::{
    error::{check_config, check_finite, check_len, Result},
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
/// **Errors.** [`Error::Length`](crate::Error::Length) if `truncated` or `out` has not one entry per score;
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
/// stop_properly_penalty(input, 0.25, &mut out)?;
/// assert_eq!(out, [1.0, 0.25]);
/// stop_properly_penalty(input, -1.0, &mut out)?;
/// assert_eq!(out, [1.0, -1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn stop_properly_penalty<R: Real>(input: TruncatedInput<'_, R>, coefficient: f64, out: &mut [R]) -> Result<()> {
    check_len("truncated", input.truncated, input.scores.len())?;
    check_len("out", out, input.scores.len())?;
    check_config("coefficient", "finite and at most 1", coefficient, coefficient.is_finite() && coefficient <= 1.0)?;
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
    /// Whether the response holds a token that ends it.
    pub ended: &'a [bool],
}

/// Scores with a fixed price for responses that never end.
///
/// ```text
/// out_i = s_i − penalty   without an end, else s_i
/// ```
///
/// **Alignment.** One entry per sequence.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `ended` or `out` has not one entry per score;
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
/// missing_eos_penalty(MissingEosInput { scores: &[1.0, 1.0], ended: &[true, false] }, 0.5, &mut out)?;
/// assert_eq!(out, [1.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn missing_eos_penalty<R: Real>(input: MissingEosInput<'_, R>, penalty: f64, out: &mut [R]) -> Result<()> {
    check_len("ended", input.ended, input.scores.len())?;
    check_len("out", out, input.scores.len())?;
    check_finite("penalty", penalty)?;
    let penalty = R::narrow(penalty);
    for ((out, &score), &ended) in out.iter_mut().zip(input.scores).zip(input.ended) {
        *out = if ended { score } else { score - penalty };
    }
    Ok(())
}

/// How scores are brought to a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RewardScale {
    /// Held to `low … high`. ROLL `reward_clip`, TRL 1.16 `reward_clip_range`.
    Clip {
        /// Not NaN.
        low: f64,
        /// Not below `low`.
        high: f64,
    },
    /// `(s + bias) · scale`, then held to ±`bound`. AReaL: bound 20.
    ShiftScaleClip {
        /// Finite.
        bias: f64,
        /// Finite.
        scale: f64,
        /// Not negative.
        bound: f64,
    },
    /// Held to `from`, then mapped linearly onto `to`. NeMo-RL.
    Map {
        /// Two finite numbers, the second above the first.
        from: (f64, f64),
        /// Two finite numbers.
        to: (f64, f64),
    },
}

/// Scores brought to a range.
///
/// ```text
/// Clip: clip(s, low, high)      ShiftScaleClip: clip((s + bias) scale, ±bound)
/// Map: t₀ + (clip(s, f₀, f₁) − f₀) (t₁ − t₀) / (f₁ − f₀)
/// ```
///
/// Returned: the share of scores a bound held. To bring *token* rewards to variance 1, use
/// [`whiten`](crate::advantage::whiten): TRL 1.16 PPO does so without shifting the mean.
///
/// **Alignment.** One entry per sequence.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `out` has not one entry per score; [`Error::Config`](crate::Error::Config) if a
/// number is out of its domain.
///
/// **Reference.** Who does which: [`RewardScale`]. The share is ROLL's `critic/reward_clip_frac`.
///
/// # Example
///
/// ```
/// use tokenwise::reward::*;
///
/// let mut out = [9.0; 4];
/// let scale = RewardScale::Map { from: (0.0, 4.0), to: (-1.0, 1.0) };
/// assert_eq!(reward_scale_clip(&[-1.0, 0.0, 1.0, 4.0], &scale, &mut out)?, 0.25);
/// assert_eq!(out, [-1.0, -1.0, -0.5, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn reward_scale_clip<R: Real>(scores: &[R], scale: &RewardScale, out: &mut [R]) -> Result<f64> {
    check_len("out", out, scores.len())?;
    let (bias, factor, low, high) = match *scale {
        RewardScale::Clip { low, high } => (0.0, 1.0, low, high),
        RewardScale::ShiftScaleClip { bias, scale, bound } => (bias, scale, -bound, bound),
        RewardScale::Map { from: (low, high), .. } => (0.0, 1.0, low, high),
    };
    check_finite("bias", bias)?;
    check_finite("scale", factor)?;
    check_config("high", "not below low", high, high >= low)?;
    if let RewardScale::Map { from, to } = *scale {
        check_config(
            "from",
            "finite and ascending",
            from.1,
            from.0.is_finite() && from.1.is_finite() && from.1 > from.0,
        )?;
        check_finite("to", to.0)?;
        check_finite("to", to.1)?;
    }
    let mut held = 0_u64;
    for (out, score) in out.iter_mut().zip(scores) {
        let moved = (score.widen() + bias) * factor;
        held += u64::from(moved < low || moved > high);
        let bounded = if moved < low { low } else { moved };
        let bounded = if bounded > high { high } else { bounded };
        *out = R::narrow(match *scale {
            RewardScale::Map { from, to } => to.0 + (bounded - from.0) * (to.1 - to.0) / (from.1 - from.0),
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
        let areal = RewardScale::ShiftScaleClip { bias: -0.5, scale: 10.0, bound: 20.0 };
        assert_eq!(reward_scale_clip(&[1.0, 9.0], &areal, &mut out), Ok(0.5));
        assert_eq!(out, [5.0, 20.0]);
        for bad in [
            RewardScale::Clip { low: 1.0, high: 0.0 },
            RewardScale::Clip { low: f64::NAN, high: 0.0 },
            RewardScale::Map { from: (1.0, 1.0), to: (0.0, 1.0) },
            RewardScale::ShiftScaleClip { bias: f64::NAN, scale: 1.0, bound: 1.0 },
        ] {
            assert!(reward_scale_clip(&[1.0, 9.0], &bad, &mut out).is_err(), "{bad:?}");
        }
        assert_eq!(out, [5.0, 20.0]);
    }

    #[test]
    fn penalties_refuse_what_is_no_coefficient() {
        let input = TruncatedInput { scores: &[1.0], truncated: &[true] };
        assert!(stop_properly_penalty(input, 1.5, &mut [0.0]).is_err());
        assert!(stop_properly_penalty(input, f64::NAN, &mut [0.0]).is_err());
    }
}
