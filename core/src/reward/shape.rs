use crate::{
    divergence::{by_estimator, KlConfig},
    error::{check_finite, check_len, refused, Error, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, map_row, Sum},
    simd::multiversion,
    statistics::Divisor,
};

/// An outcome score laid on the token that ended the response.
///
/// ```text
/// out[i, t] = s_i    if t is the last kept token of sequence i, else 0
/// ```
///
/// **Alignment.** `scores` has one entry per sequence, `out` is action-aligned.
///
/// **Mask.** Dropped slots get 0. The score of a sequence without kept tokens goes nowhere: it takes no part.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`.
///
/// **Reference.** verl 0.9.1 uses the last attended slot (the same where the last token is the policy's own); OpenRLHF 0.11 the last
/// kept one, and the last column for a row without any.
///
/// # Example
///
/// ```
/// use tokenwise::{reward::place_scores, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 3)?, Mask::new(&[true, true, false, false, false, false]))?;
/// let mut out = [9.0; 6];
/// place_scores(&batch, &[1.0, 5.0], &mut out)?;
/// assert_eq!(out, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn place_scores<R: Real>(batch: &Batch<'_>, scores: &[R], out: &mut [R]) -> Result<()> {
    check_len("scores", scores, batch.sequences())?;
    check_len("out", out, batch.tokens())?;
    out.fill(R::zero());
    for (row, &score) in batch.rows().zip(scores) {
        if let Some(last) = row.last_kept() {
            row.of_mut(out)[last] = score;
        }
    }
    Ok(())
}

/// What [`shape_rewards`] reads.
#[derive(Clone, Copy, Debug)]
pub struct ShapeInput<'a, R> {
    /// Token scores, usually 0 but on the last token ([`place_scores`]).
    pub scores: &'a [R],
    /// KL per token.
    pub kl: &'a [R],
}

/// Token rewards: the scores, less a price for leaving the reference.
///
/// ```text
/// r_t = score_t − β kl_t
/// ```
///
/// β = 0 gives the scores.
///
/// **Alignment.** Action-aligned in and out: `rewards[i]` is r(s_t, a_t, s_{t+1}).
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if β is not finite.
///
/// **Reference.** The owner's chain, question 1; verl 0.9.1 `apply_kl_penalty`, which leaves the scores of dropped slots standing.
///
/// # Example
///
/// ```
/// use tokenwise::{reward::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let mut rewards = [9.0; 3];
/// shape_rewards(&batch, ShapeInput { scores: &[0.0, f64::NAN, 1.0], kl: &[0.5, f64::NAN, -0.25] }, 0.5, &mut rewards)?;
/// assert_eq!(rewards, [-0.25, 0.0, 1.125]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn shape_rewards<R: Real>(batch: &Batch<'_>, input: ShapeInput<'_, R>, beta: f64, rewards: &mut [R]) -> Result<()> {
    check_len("scores", input.scores, batch.tokens())?;
    check_len("kl", input.kl, batch.tokens())?;
    check_len("rewards", rewards, batch.tokens())?;
    check_finite("beta", beta)?;
    let beta = R::narrow(beta);
    for row in batch.rows() {
        map_row(&row, [input.scores, input.kl], [&mut *rewards], |[score, kl]| ([score - beta * kl], []));
    }
    Ok(())
}

/// What [`kl_in_reward`] reads.
#[derive(Clone, Copy, Debug)]
pub struct KlInRewardInput<'a, R> {
    /// Token scores, usually 0 but on the last token ([`place_scores`]).
    pub scores: &'a [R],
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: &'a [R],
    /// Log-probabilities of the reference.
    pub ref_log_probs: &'a [R],
}

/// How [`kl_in_reward`] prices the KL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KlRewardConfig {
    /// The price β; default 0.001.
    pub beta: f64,
    /// Which estimate; its gradient is not used, rewards are constants.
    pub kl: KlConfig,
    /// What the mean KL of a sequence divides by; default the exact count.
    pub divisor: Divisor,
}

impl Default for KlRewardConfig {
    fn default() -> Self {
        Self { beta: 1e-3, kl: KlConfig::default(), divisor: Divisor::Count }
    }
}

/// Token rewards straight from log-probabilities, and the mean KL that a controller of β wants to see.
///
/// ```text
/// r_t = score_t − β kl(log π_old, log π_ref)_t        returned: mean over sequences of (Σ_t kl_t / n_i)
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0. A sequence without kept tokens counts as 0 in the mean over sequences.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if β is not finite;
/// [`Error::EmptyMask`] if there is no sequence.
///
/// **Reference.** verl 0.9.1 `apply_kl_penalty` (with [`Divisor::CountPlusEpsilon`]); the returned mean is its `current_kl`.
///
/// # Example
///
/// ```
/// use tokenwise::{reward::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let mut rewards = [9.0; 3];
/// let mean_kl = kl_in_reward(
///     &batch,
///     KlInRewardInput {
///         scores: &[0.0, f64::NAN, 1.0],
///         old_log_probs: &[-1.0, f64::NAN, -0.5],
///         ref_log_probs: &[-1.5, f64::NAN, -0.5],
///     },
///     &KlRewardConfig { beta: 0.5, ..Default::default() },
///     &mut rewards,
/// )?;
/// assert_eq!((rewards, mean_kl), ([-0.25, 0.0, 1.0], 0.25));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_in_reward<R: Real>(
    batch: &Batch<'_>,
    input: KlInRewardInput<'_, R>,
    config: &KlRewardConfig,
    rewards: &mut [R],
) -> Result<f64> {
    check_len("scores", input.scores, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    check_len("rewards", rewards, batch.tokens())?;
    check_finite("beta", config.beta)?;
    if batch.sequences() == 0 {
        return refused(Error::EmptyMask);
    }
    Ok(priced(batch, input, config, rewards))
}

multiversion! {
    fn priced<R: Real>(batch: &Batch<'_>, input: KlInRewardInput<'_, R>, config: &KlRewardConfig, rewards: &mut [R]) -> f64 {
        let beta = R::narrow(config.beta);
        let inputs = [input.scores, input.old_log_probs, input.ref_log_probs];
        let mut means = Sum::default();
        by_estimator!(&config.kl, |estimate| for row in batch.rows() {
            let [sum] = fold_row(&row, inputs, [&mut *rewards], |[score, old, reference]| {
                let kl = estimate.value(old - reference);
                ([score - beta * kl], [kl])
            });
            let kept = row.kept();
            if kept > 0 {
                means.add(sum / config.divisor.of(kept as f64));
            }
        });
        means.value() / batch.sequences() as f64
    }
}
