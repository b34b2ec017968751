use crate::{
    error::{check_len, check_not_negative, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, Sum},
};

/// What [`positive_nll`] reads.
#[derive(Clone, Copy, Debug)]
pub struct PositiveNllInput<'a, R> {
    /// Log-probabilities of the policy being trained, action-aligned; the gradient is taken with respect to these.
    pub log_probs: &'a [R],
    /// One score per sequence.
    pub scores: &'a [R],
}

/// The settings of [`positive_nll`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct PositiveNllConfig {
    /// μ, the factor on the mean; not negative, default 0.1.
    pub mu: f64,
}

impl Default for PositiveNllConfig {
    fn default() -> Self {
        Self { mu: 0.1 }
    }
}

/// Imitation of the good responses only: their mean negative log-likelihood. Returns the loss, writes ∂loss/∂log_probs
/// into `grad`.
///
/// ```text
/// loss = −μ Σ_{i: s_i > 0} Σ_t log π_t / N₊        ∂loss/∂log π_t = −μ / N₊ [s_i > 0]
/// N₊ kept tokens of those sequences
/// ```
///
/// 0 if no response has a positive score. A NaN score makes N₊, and with it loss and gradient, NaN.
///
/// **Alignment.** `scores` has one entry per sequence; the rest is action-aligned.
///
/// **Mask.** Dropped slots are never read, not counted, and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if μ is negative or not finite.
///
/// **Reference.** Yue et al. 2025 (VAPO), arXiv:2504.05118, eq. 10; NeMo-RL (2026-08), which counts N₊ locally.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let mut grad = [9.0; 4];
/// let input = PositiveNllInput { log_probs: &[-0.5, -1.5, -9.0, f64::NAN], scores: &[1.0, -1.0] };
/// assert_eq!(positive_nll(&batch, input, &PositiveNllConfig { mu: 0.5 }, &mut grad)?, 0.5);
/// assert_eq!(grad, [-0.25, -0.25, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn positive_nll<R: Real>(
    batch: &Batch<'_>,
    input: PositiveNllInput<'_, R>,
    config: &PositiveNllConfig,
    grad: &mut [R],
) -> Result<f64> {
    let PositiveNllInput { log_probs, scores } = input;
    check_len("log_probs", log_probs, batch.tokens())?;
    check_len("scores", scores, batch.sequences())?;
    check_len("grad", grad, batch.tokens())?;
    check_not_negative::<R>("mu", config.mu)?;
    let good = || batch.rows().zip(scores).filter(|(_, &score)| (score > R::zero()) | score.is_nan());
    let undefined = batch.rows().zip(scores).any(|(row, score)| score.is_nan() && row.kept() > 0);
    let tokens = good().fold(0, |tokens, (row, _)| tokens + row.kept());
    let share = match tokens {
        0 => 0.0,
        _ if undefined => f64::NAN,
        _ => config.mu / tokens as f64,
    };
    grad.fill(R::zero());
    let mut total = Sum::default();
    for (row, _) in good() {
        let slope = R::narrow(-share);
        let [sum] = fold_row(&row, [log_probs], [&mut *grad], |[log_prob]| {
            ([if log_prob.is_nan() { log_prob } else { slope }], [log_prob.widen()])
        });
        total.add(sum);
    }
    // 0, not −0, if no score is positive
    Ok(0.0 - share * total.value())
}
