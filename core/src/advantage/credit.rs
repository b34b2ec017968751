use super::{discounted_returns, GaeInput, GaeOutput, ReturnsConfig, ReturnsInput};
use crate::{
    error::{check_config, check_len, Error, Result},
    layout::Batch,
    real::Real,
    reduce::{map_row, row_total},
};

/// Credit shared equally: every kept token gets the same part of its sequence's score.
///
/// ```text
/// A[i, t] = s_i / n_i        n_i kept tokens in sequence i
/// ```
///
/// **Alignment.** `scores` has one entry per sequence, `out` is action-aligned.
///
/// **Mask.** Dropped slots get 0. The score of a sequence without kept tokens is not used.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`.
///
/// **Reference.** `docs/chain.md` §6.1.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::uniform_credit, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 5)?, Mask::new(&[true, true, false, true, true]))?;
/// let mut out = [9.0; 5];
/// uniform_credit(&batch, &[1.0], &mut out)?;
/// assert_eq!(out, [0.25, 0.25, 0.0, 0.25, 0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn uniform_credit<R: Real>(batch: &Batch<'_>, scores: &[R], out: &mut [R]) -> Result<()> {
    last_k(batch, scores, usize::MAX, out)
}

/// How many tokens [`last_k_credit`] credits. There is no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct LastKConfig {
    /// Number of kept tokens at the end that share the score; at least 1.
    pub k: usize,
}

/// Credit for the end only: the last `k` kept tokens share the score, the others get 0.
///
/// ```text
/// A[i, t] = s_i / min(k, n_i)    for the last min(k, n_i) kept tokens of sequence i, else 0
/// ```
///
/// `k = 1` puts the score on the last kept token; `k ≥ n_i` is [`uniform_credit`].
///
/// **Alignment.** `scores` has one entry per sequence, `out` is action-aligned.
///
/// **Mask.** Dropped slots are not counted and get 0.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if `k` is 0.
///
/// **Reference.** `docs/chain.md` §6.2.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 5)?, Mask::new(&[true, true, true, false, true]))?;
/// let mut out = [9.0; 5];
/// last_k_credit(&batch, &[1.0], &LastKConfig { k: 2 }, &mut out)?;
/// assert_eq!(out, [0.0, 0.0, 0.5, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn last_k_credit<R: Real>(batch: &Batch<'_>, scores: &[R], config: &LastKConfig, out: &mut [R]) -> Result<()> {
    let k = config.k;
    check_config("k", "at least 1", k as f64, k > 0)?;
    last_k(batch, scores, k, out)
}

fn last_k<R: Real>(batch: &Batch<'_>, scores: &[R], k: usize, out: &mut [R]) -> Result<()> {
    check_len("scores", scores, batch.sequences())?;
    check_len("out", out, batch.tokens())?;
    for (row, &score) in batch.rows().zip(scores) {
        let mut left = k.min(row.kept());
        let share = R::narrow(score.widen() / left as f64);
        for (out, &keep) in row.of_mut(out).iter_mut().zip(row.keep).rev() {
            *out = if keep && left > 0 {
                left -= 1;
                share
            } else {
                R::zero()
            };
        }
    }
    Ok(())
}

/// What [`attention_credit`] reads.
#[derive(Clone, Copy, Debug)]
pub struct AttentionInput<'a, R> {
    /// One score per sequence.
    pub scores: &'a [R],
    /// Importance of each token, not negative, action-aligned; only the proportions matter.
    pub weights: &'a [R],
}

/// Credit by weight: the score of a sequence is divided among its kept tokens in proportion to their weights.
///
/// ```text
/// A[i, t] = s_i · w[i, t] / Σ_u w[i, u]
/// ```
///
/// Equal weights give [`uniform_credit`].
///
/// **Alignment.** `scores` has one entry per sequence; `weights` and `out` are action-aligned.
///
/// **Mask.** Dropped slots take no part in the sum, are never read, and get 0.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Entry`] if a kept weight is negative or
/// infinite, or if all kept weights of a sequence are 0 (the index is that of the sequence's first slot).
///
/// **Reference.** `docs/chain.md` §6.3.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let mut out = [9.0; 4];
/// attention_credit(&batch, AttentionInput { scores: &[2.0], weights: &[1.0, 2.0, f64::NAN, 1.0] }, &mut out)?;
/// assert_eq!(out, [0.5, 1.0, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn attention_credit<R: Real>(batch: &Batch<'_>, input: AttentionInput<'_, R>, out: &mut [R]) -> Result<()> {
    check_len("scores", input.scores, batch.sequences())?;
    check_len("weights", input.weights, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    let must_be = "finite and not negative, with a positive sum in each sequence";
    for row in batch.token_rows() {
        let weights = row.of(input.weights);
        let (mut first, mut positive, mut undefined) = (None, false, false);
        for (t, (&weight, &keep)) in weights.iter().zip(row.keep).enumerate() {
            if keep {
                if weight < R::zero() || weight == R::infinity() {
                    return Err(Error::Entry { what: "weights", index: row.start + t, must_be, got: weight.widen() });
                }
                first = first.or(Some(row.start + t));
                positive |= weight > R::zero();
                undefined |= weight.is_nan();
            }
        }
        if let (Some(index), false, false) = (first, positive, undefined) {
            return Err(Error::Entry { what: "weights", index, must_be, got: 0.0 });
        }
    }
    for (row, &score) in batch.rows().zip(input.scores) {
        let total = row_total(&row, input.weights);
        let unit = score.widen() / total;
        map_row(&row, [input.weights], out, |[w]| R::narrow(w.widen() * unit));
    }
    Ok(())
}

/// The return that was observed, minus the value that the critic expected.
///
/// ```text
/// G_t = r_t + γ G_{t+1}        A_t = G_t − V_t
/// ```
///
/// Equals GAE at λ = 1 up to rounding: unbiased, and as noisy as the returns.
///
/// **Alignment.** `rewards` and `advantages` are action-aligned, `values` and `returns` state-aligned; `bootstrap` has
/// one entry per sequence.
///
/// **Mask.** Dropped slots are never read and get 0; `t + 1` as in [`discounted_returns`].
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if γ is outside `[0, 1]`.
///
/// **Reference.** `docs/chain.md` §6.4.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let (mut advantages, mut returns) = ([9.0; 3], [9.0; 3]);
/// monte_carlo_advantage(
///     &batch,
///     GaeInput { rewards: &[0.5, f64::NAN, 1.0], values: &[0.25, f64::NAN, 0.5], bootstrap: &[0.0] },
///     &ReturnsConfig { gamma: 0.5, ..Default::default() },
///     GaeOutput { advantages: &mut advantages, returns: &mut returns },
/// )?;
/// assert_eq!(returns, [1.0, 0.0, 1.0]);
/// assert_eq!(advantages, [0.75, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn monte_carlo_advantage<R: Real>(
    batch: &Batch<'_>,
    input: GaeInput<'_, R>,
    config: &ReturnsConfig,
    output: GaeOutput<'_, R>,
) -> Result<()> {
    check_len("values", input.values, batch.tokens())?;
    check_len("advantages", output.advantages, batch.tokens())?;
    check_len("returns", output.returns, batch.tokens())?;
    let returns_input = ReturnsInput { rewards: input.rewards, bootstrap: input.bootstrap };
    discounted_returns(batch, returns_input, config, output.returns)?;
    for row in batch.token_rows() {
        map_row(&row, [&*output.returns, input.values], output.advantages, |[g, v]| g - v);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Layout, Mask};

    #[test]
    fn a_score_that_no_token_may_have_is_refused() {
        let batch = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[true, true, false, true])).unwrap();
        let input = AttentionInput { scores: &[1.0, 1.0], weights: &[0.0, 2.0, 1.0, 0.0] };
        let mut out = [9.0; 4];
        let error = attention_credit(&batch, input, &mut out).unwrap_err();
        assert!(matches!(error, Error::Entry { what: "weights", index: 3, .. }), "{error}");
        assert_eq!(out, [9.0; 4]);
    }
}
