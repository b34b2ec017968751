use crate::{
    error::{check_config, check_finite, check_len, check_range, Result},
    layout::Batch,
    real::Real,
    reduce::{map_row, row_difference},
    simd::multiversion,
};

/// What [`kl_in_scores`] reads.
#[derive(Clone, Copy, Debug)]
pub struct KlInScoresInput<'a, R> {
    /// One score per sequence.
    pub scores: &'a [R],
    /// Log-probabilities under the policy that sampled the tokens, action-aligned.
    pub old_log_probs: &'a [R],
    /// Log-probabilities of the reference, action-aligned.
    pub ref_log_probs: &'a [R],
}

/// The weight of the KL in [`kl_in_scores`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct KlInScoresConfig {
    /// Coefficient β of the KL; finite, default 0.05.
    pub beta: f64,
}

impl Default for KlInScoresConfig {
    fn default() -> Self {
        Self { beta: 0.05 }
    }
}

/// Scores minus a penalty on the KL of the whole sequence to the reference.
///
/// ```text
/// out_i = s_i − β Σ_t (log π_old − log π_ref)
/// ```
///
/// A sum, not a mean: the penalty grows with the length of a response.
///
/// **Alignment.** Log-probabilities are action-aligned; `scores` and `out` have one entry per sequence.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens keeps its score.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if β is not finite.
///
/// **Reference.** TRL 1.16 RLOO (β 0.05), after its clip of the scores and before the baseline.
///
/// # Example
///
/// ```
/// use tokenwise::{reward::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = KlInScoresInput {
///     scores: &[1.0],
///     old_log_probs: &[-1.0, f64::NAN, -0.5],
///     ref_log_probs: &[-1.5, f64::NAN, -1.0],
/// };
/// let mut out = [9.0];
/// kl_in_scores(&batch, input, &KlInScoresConfig { beta: 0.25 }, &mut out)?;
/// assert_eq!(out, [0.75]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_in_scores<R: Real>(
    batch: &Batch<'_>,
    input: KlInScoresInput<'_, R>,
    config: &KlInScoresConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("scores", input.scores, batch.sequences())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    check_len("out", out, batch.sequences())?;
    check_finite::<R>("beta", config.beta)?;
    less_kl(batch, input, config.beta, out);
    Ok(())
}

#[multiversion]
fn less_kl<R: Real>(batch: &Batch<'_>, input: KlInScoresInput<'_, R>, beta: f64, out: &mut [R]) {
    for ((row, &score), out) in batch.rows().zip(input.scores).zip(out) {
        let sum = row_difference(&row, input.old_log_probs, input.ref_log_probs);
        *out = R::narrow(score.widen() - beta * sum);
    }
}

/// What [`clipped_rewards`] reads.
#[derive(Clone, Copy, Debug)]
pub struct ClippedRewardsInput<'a, R> {
    /// One score per sequence.
    pub scores: &'a [R],
    /// KL per token, action-aligned.
    pub kl: &'a [R],
}

/// The conventions of [`clipped_rewards`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ClippedRewardsConfig {
    /// Coefficient β of the KL; a negative one counts as 0. Default 0.01.
    pub beta: f64,
    /// Lower bound of the scores; default −10, −inf for no bound.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub low: f64,
    /// Upper bound of the scores; default 10, +inf for no bound.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub high: f64,
}

impl Default for ClippedRewardsConfig {
    fn default() -> Self {
        Self { beta: 0.01, low: -10.0, high: 10.0 }
    }
}

/// Token rewards as in OpenRLHF: the clipped score on the last kept token, the KL penalty on every kept token.
///
/// ```text
/// r_t = −max(β, 0) kl_t + [t is the last kept token] clip(s_i, low, high)
/// ```
///
/// **Alignment.** `scores` has one entry per sequence; `kl` and `rewards` are action-aligned.
///
/// **Mask.** Dropped slots are never read and get 0. The score of a sequence without kept tokens is not used.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if β is not finite or the bounds are not in order.
///
/// **Reference.** OpenRLHF 0.11 `compute_reward`, which also penalises dropped slots and puts the score of an empty row
/// into its last column; both are masked out later.
///
/// # Example
///
/// ```
/// use tokenwise::{reward::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, false, true, false]))?;
/// let input = ClippedRewardsInput { scores: &[20.0], kl: &[1.0, f64::NAN, 1.0, f64::NAN] };
/// let mut rewards = [9.0; 4];
/// clipped_rewards(&batch, input, &ClippedRewardsConfig { beta: 0.5, ..Default::default() }, &mut rewards)?;
/// assert_eq!(rewards, [-0.5, 0.0, 9.5, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn clipped_rewards<R: Real>(
    batch: &Batch<'_>,
    input: ClippedRewardsInput<'_, R>,
    config: &ClippedRewardsConfig,
    rewards: &mut [R],
) -> Result<()> {
    check_len("scores", input.scores, batch.sequences())?;
    check_len("kl", input.kl, batch.tokens())?;
    check_len("rewards", rewards, batch.tokens())?;
    check_finite::<R>("beta", config.beta)?;
    check_config("high", "not below low", config.high, config.high >= config.low)?;
    check_range::<R>("low", config.low)?;
    check_range::<R>("high", config.high)?;
    let beta = R::narrow(if config.beta > 0.0 { config.beta } else { 0.0 });
    let (low, high) = (R::narrow(config.low), R::narrow(config.high));
    for (row, &score) in batch.rows().zip(input.scores) {
        map_row(&row, [input.kl], rewards, |[kl]| -beta * kl);
        if let Some(last) = row.last_kept() {
            let score = if score < low { low } else { score };
            row.of_mut(rewards)[last] += if score > high { high } else { score };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    #[test]
    fn scores_are_held_on_both_sides_and_a_negative_price_is_none() {
        let keep = [true, false, true, false, false, false, false, false];
        let batch = Batch::new(Layout::padded(2, 4).unwrap(), Mask::new(&keep)).unwrap();
        let kl = [1.0, f64::NAN, 1.0, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN];
        let mut rewards = [7.0; 8];
        let input = ClippedRewardsInput { scores: &[20.0, 5.0], kl: &kl };
        clipped_rewards(&batch, input, &ClippedRewardsConfig { beta: 0.1, ..Default::default() }, &mut rewards)
            .unwrap();
        assert_eq!(rewards, [-0.1, 0.0, 9.9, 0.0, 0.0, 0.0, 0.0, 0.0]);
        let input = ClippedRewardsInput { scores: &[-20.0, 5.0], ..input };
        clipped_rewards(&batch, input, &ClippedRewardsConfig { beta: -0.1, ..Default::default() }, &mut rewards)
            .unwrap();
        assert_eq!((rewards[0], rewards[2]), (0.0, -10.0));
        let crossed = ClippedRewardsConfig { low: 1.0, high: -1.0, ..Default::default() };
        assert!(clipped_rewards(&batch, input, &crossed, &mut rewards).is_err());
    }
}
