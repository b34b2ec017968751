use crate::{
    error::{check_config, check_len, check_not_negative, Result},
    real::Real,
};

/// What [`overlong_penalty`] reads; one entry per sequence.
#[derive(Clone, Copy, Debug)]
pub struct OverlongInput<'a, R> {
    /// The scores before the penalty.
    pub scores: &'a [R],
    /// Response lengths in tokens.
    pub lengths: &'a [u32],
}

/// How far the penalty grows for responses longer than `max_len`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum OverlongFloor {
    /// Without limit, in proportion to the excess. verl 0.9.1, NeMo-RL and AReaL (2026).
    #[default]
    Unlimited,
    /// At most `factor`. OpenRLHF 0.11; −1 in the DAPO paper.
    Factor,
}

/// Where the penalty begins and how steep it is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct OverlongConfig {
    /// The longest response allowed.
    pub max_len: u32,
    /// The penalty grows linearly over the last `buffer` tokens before `max_len`; at least 1, at most `max_len`.
    pub buffer: u32,
    /// The penalty reached at `max_len`; default 1.
    pub factor: f64,
    /// What happens beyond; default [`OverlongFloor::Unlimited`].
    pub floor: OverlongFloor,
}

impl Default for OverlongConfig {
    fn default() -> Self {
        Self { max_len: 20_480, buffer: 4_096, factor: 1.0, floor: OverlongFloor::Unlimited }
    }
}

/// Scores with a soft penalty for responses that come near the length limit.
///
/// ```text
/// e_i = L_i − (max_len − buffer)        out_i = s_i + min(−e_i / buffer · factor, 0)
/// ```
///
/// Under [`OverlongFloor::Factor`], `e_i` counts at most `buffer`. Up to `max_len − buffer` tokens there is no penalty.
///
/// **Alignment.** One entry per sequence.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `lengths` or `out` does not have one entry per score;
/// [`Error::Config`](crate::Error::Config) if `buffer` is 0 or above `max_len`, or `factor` is negative or not finite.
///
/// **Reference.** Yu et al. 2025 (DAPO), arXiv:2503.14476, eq. 13. Floors by framework: [`OverlongFloor`].
///
/// # Example
///
/// ```
/// use tokenwise::reward::*;
///
/// let config = OverlongConfig { max_len: 10, buffer: 4, factor: 1.0, floor: OverlongFloor::Factor };
/// let mut out = [9.0; 4];
/// overlong_penalty(OverlongInput { scores: &[1.0; 4], lengths: &[6, 7, 10, 12] }, &config, &mut out)?;
/// assert_eq!(out, [1.0, 0.75, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn overlong_penalty<R: Real>(input: OverlongInput<'_, R>, config: &OverlongConfig, out: &mut [R]) -> Result<()> {
    check_len("lengths", input.lengths, input.scores.len())?;
    check_len("out", out, input.scores.len())?;
    let buffer = f64::from(config.buffer);
    check_config("buffer", "at least 1 and at most max_len", buffer, (1..=config.max_len).contains(&config.buffer))?;
    check_not_negative::<R>("factor", config.factor)?;
    let free = i64::from(config.max_len) - i64::from(config.buffer);
    for ((out, &score), &length) in out.iter_mut().zip(input.scores).zip(input.lengths) {
        let mut excess = i64::from(length) - free;
        if config.floor == OverlongFloor::Factor {
            excess = excess.min(i64::from(config.buffer));
        }
        let penalty = if excess > 0 { -(excess as f64) / buffer * config.factor } else { 0.0 };
        *out = R::narrow(score.widen() + penalty);
    }
    Ok(())
}
