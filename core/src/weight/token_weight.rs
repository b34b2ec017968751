use crate::{
    error::{check_len, Result},
    layout::Batch,
    math::exp,
    real::Real,
    reduce::map_row,
    simd::multiversion,
};

/// How much a token's entropy counts in the budget: the `w` of [`dual_game`](crate::loss::dual_game()).
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum TokenWeight<'a, R> {
    /// `p (1 − p) |A|`: large for uncertain tokens with a large advantage.
    #[default]
    Plain,
    /// `p (1 − p) |A| |log π − log π_ref|`: 0 where the policy equals its reference. Without a reference the last
    /// factor is 1.
    KlGated,
    /// Precomputed weights, such as those of [`structural_weights`](super::structural_weights); constants.
    Structural(&'a [R]),
}

/// What [`token_weights`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct TokenWeightInput<'a, R> {
    /// Log-probabilities of the policy.
    pub log_probs: &'a [R],
    /// Log-probabilities of the reference, if there is one; only [`TokenWeight::KlGated`] reads them.
    pub ref_log_probs: Option<&'a [R]>,
    /// Advantages.
    pub advantages: &'a [R],
    /// Which weight.
    pub weight: TokenWeight<'a, R>,
}

impl<'a, R> TokenWeightInput<'a, R> {
    /// [`TokenWeight::Plain`], without a reference.
    pub const fn new(log_probs: &'a [R], advantages: &'a [R]) -> Self {
        Self { log_probs, ref_log_probs: None, advantages, weight: TokenWeight::Plain }
    }
}

impl<R> TokenWeight<'_, R> {
    pub(crate) fn check(&self, batch: &Batch<'_>) -> Result<()> {
        match self {
            Self::Structural(weights) => check_len("weight", weights, batch.tokens()),
            _ => Ok(()),
        }
    }
}

/// How much each token's entropy counts in the budget.
///
/// ```text
/// p = e^{log π}      Plain: w = p (1 − p) |A|      KlGated: w = p (1 − p) |A| |log π − log π_ref|
/// Structural: as given
/// ```
///
/// Tokens with probability 0 or 1 get weight 0 from `Plain` and `KlGated`, and so do those with advantage 0.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** BNTO, `docs/bnto.md` §3: groups C1 and C2 use `Plain`, C3 uses `KlGated`.
///
/// # Example
///
/// ```
/// use tokenwise::{math, weight::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = TokenWeightInput {
///     log_probs: &[math::ln(0.5), f64::NAN, 0.0],
///     ref_log_probs: Some(&[math::ln(0.5) - 2.0, f64::NAN, -1.0]),
///     advantages: &[-4.0, f64::NAN, 1.0],
///     weight: TokenWeight::Plain,
/// };
/// let mut out = [9.0; 3];
/// token_weights(&batch, input, &mut out)?;
/// assert_eq!(out, [1.0, 0.0, 0.0]);
/// token_weights(&batch, TokenWeightInput { weight: TokenWeight::KlGated, ..input }, &mut out)?;
/// assert_eq!(out, [2.0, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn token_weights<R: Real>(batch: &Batch<'_>, input: TokenWeightInput<'_, R>, out: &mut [R]) -> Result<()> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    if let Some(ref_log_probs) = input.ref_log_probs {
        check_len("ref_log_probs", ref_log_probs, batch.tokens())?;
    }
    check_len("advantages", input.advantages, batch.tokens())?;
    input.weight.check(batch)?;
    check_len("out", out, batch.tokens())?;
    write(batch, input, out);
    Ok(())
}

#[multiversion]
fn write<R: Real>(batch: &Batch<'_>, input: TokenWeightInput<'_, R>, out: &mut [R]) {
    let (kind, given) = Kind::of(input.weight, input.ref_log_probs, input.log_probs);
    let reference = input.ref_log_probs.unwrap_or(input.log_probs);
    for row in batch.token_rows() {
        let inputs = [input.log_probs, reference, input.advantages, given];
        map_row(&row, inputs, out, |[log_prob, reference, advantage, given]| {
            kind.weigh(log_prob, log_prob - reference, advantage, given).weight
        });
    }
}

/// A [`TokenWeight`] without its slices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Gated,
    Given,
}

/// The weight of one token, and its derivative with respect to the log-probability.
pub(crate) struct Weighed<R> {
    pub(crate) weight: R,
    pub(crate) slope: R,
}

impl Kind {
    /// The kind, and the given weights; if there are none, `other` is returned in their place and never read.
    pub(crate) fn of<'a, R>(weight: TokenWeight<'a, R>, reference: Option<&[R]>, other: &'a [R]) -> (Self, &'a [R]) {
        match weight {
            TokenWeight::Structural(weights) => (Self::Given, weights),
            TokenWeight::KlGated if reference.is_some() => (Self::Gated, other),
            _ => (Self::Plain, other),
        }
    }

    #[inline(always)]
    pub(crate) fn weigh<R: Real>(self, log_prob: R, gap: R, advantage: R, given: R) -> Weighed<R> {
        let (zero, one) = (R::zero(), R::one());
        let p = exp(log_prob);
        // a token with probability 0 has weight 0 however far it is from its reference: 0 · inf would be NaN
        let gap = if p == zero { zero } else { gap };
        let weight = p * (one - p) * advantage.abs();
        let slope = p * (one - (p + p)) * advantage.abs();
        let sign = if gap > zero {
            one
        } else if gap < zero {
            -one
        } else {
            zero
        };
        match self {
            Self::Plain => Weighed { weight, slope },
            Self::Gated => Weighed { weight: weight * gap.abs(), slope: slope * gap.abs() + weight * sign },
            Self::Given => Weighed { weight: given, slope: zero },
        }
    }
}
