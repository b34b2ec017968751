use crate::{
    error::{check_len, check_not_negative, Error, Result},
    layout::Batch,
    real::Real,
    statistics::{CoMoments, Spread},
};

/// What [`explained_variance`] reads, both state-aligned.
#[derive(Clone, Copy, Debug)]
pub struct ExplainedVarianceInput<'a, R> {
    /// The critic's values.
    pub values: &'a [R],
    /// The returns, their targets.
    pub returns: &'a [R],
}

/// The conventions of [`explained_variance`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ExplainedVarianceConfig {
    /// Added to the variance of the returns; not negative, default 1e-5.
    pub epsilon: f64,
    /// Variance divided by `n − 1` (default) or `n`.
    pub spread: Spread,
}

impl Default for ExplainedVarianceConfig {
    fn default() -> Self {
        Self { epsilon: 1e-5, spread: Spread::Sample }
    }
}

/// How much of the variance of the returns the critic predicted: 1 all of it, 0 no better than a constant, negative
/// worse.
///
/// ```text
/// 1 − Var(G − V) / (Var(G) + ε)
/// ```
///
/// **Alignment.** State-aligned.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if ε is negative or not finite;
/// [`Error::EmptyMask`] without kept tokens; [`Error::TooFew`] for the sample variance of one token.
///
/// **Reference.** verl 0.9.1 `critic/vf_explained_var` (which gives NaN for one token).
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = ExplainedVarianceInput { values: &[1.0, f64::NAN, 1.0], returns: &[0.0, f64::NAN, 4.0] };
/// let config = ExplainedVarianceConfig { epsilon: 0.0, ..Default::default() };
/// assert_eq!(explained_variance(&batch, input, &config)?, 0.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn explained_variance<R: Real>(
    batch: &Batch<'_>,
    input: ExplainedVarianceInput<'_, R>,
    config: &ExplainedVarianceConfig,
) -> Result<f64> {
    check_len("values", input.values, batch.tokens())?;
    check_len("returns", input.returns, batch.tokens())?;
    check_not_negative::<R>("epsilon", config.epsilon)?;
    explained_by(&CoMoments::of_two(batch, input.returns, input.values), config)
}

/// From the moments of returns (x) and values (y).
pub(crate) fn explained_by(moments: &CoMoments, config: &ExplainedVarianceConfig) -> Result<f64> {
    if moments.count == 0 {
        return Err(Error::EmptyMask);
    }
    if moments.count < config.spread.needs() {
        return Err(Error::TooFew { what: "explained_variance", needed: 2, got: 1 });
    }
    let n = moments.count as f64;
    let divisor = if config.spread == Spread::Sample { n - 1.0 } else { n };
    let of_returns = moments.m2_x / divisor;
    let of_residuals = (moments.m2_x + moments.m2_y - 2.0 * moments.co_moment) / divisor;
    Ok(1.0 - of_residuals / (of_returns + config.epsilon))
}
