use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    real::Real,
    reduce::{row_total, Sum},
    simd::multiversion,
    statistics::{CoMoments, Divisor, MeanConfig, Moments, PairInput, Spread},
};

/// Mean over the kept tokens.
///
/// ```text
/// Σ_t x_t / N        N kept tokens, or N + 1e-8 with Divisor::CountPlusEpsilon
/// ```
///
/// Summed in `f64`: a mean of 10⁶ `f32` values, rounded to `f32`, is within 1 ulp of the exact one.
///
/// **Alignment.** Any; that of the values.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if `values` does not fit `batch`; [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** verl 0.9.1 `masked_mean` is `CountPlusEpsilon` (and 0 for an empty mask); TRL 1.16 and OpenRLHF 0.11
/// are `Count` (and NaN for an empty mask).
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask, MeanConfig};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// assert_eq!(mean(&batch, &[1.0, f64::NAN, 2.0], &MeanConfig::default())?, 1.5);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn mean<R: Real>(batch: &Batch<'_>, values: &[R], config: &MeanConfig) -> Result<f64> {
    check_len("values", values, batch.tokens())?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    Ok(total(batch, values) / config.divisor.of(batch.kept() as f64))
}

#[multiversion]
fn total<R: Real>(batch: &Batch<'_>, values: &[R]) -> f64 {
    let mut all = Sum::default();
    for row in batch.token_rows() {
        let sum = row_total(&row, values);
        all.add(sum);
    }
    all.value()
}

/// Which variance [`variance`] takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct VarianceConfig {
    /// Divided by `n − 1` (default) or `n`.
    pub spread: Spread,
    /// Divisor of means; default the exact count.
    pub divisor: Divisor,
}

/// Variance over the kept tokens.
///
/// ```text
/// Σ_t (x_t − μ)² / N            Spread::Population
/// Σ_t (x_t − μ)² / (N − 1)      Spread::Sample
/// ```
///
/// **Alignment.** Any; that of the values.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if `values` does not fit `batch`; [`Error::EmptyMask`] without kept tokens;
/// [`Error::TooFew`] for the sample variance of one token.
///
/// **Reference.** verl 0.9.1 `masked_var` is `Sample` with [`Divisor::CountPlusEpsilon`]; like this function it rejects
/// a single token.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// assert_eq!(variance(&batch, &[1.0, f64::NAN, 3.0], &VarianceConfig::default())?, 2.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn variance<R: Real>(batch: &Batch<'_>, values: &[R], config: &VarianceConfig) -> Result<f64> {
    Moments::of(batch, values)?.variance(config.spread, config.divisor)
}

/// Pearson's correlation of two quantities over the kept tokens.
///
/// ```text
/// Σ (x − x̄)(y − ȳ) / √(Σ (x − x̄)² · Σ (y − ȳ)²)
/// ```
///
/// In [−1, 1] up to rounding; NaN where one of the two is constant.
///
/// **Alignment.** Any, the same for both.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::TooFew`] with fewer than two kept tokens.
///
/// **Reference.** verl 0.9.1 `rollout_actor_probs_pearson_corr`; `analysis/corr` of
/// `docs/bnto.md` §2 adds an ε to the divisor.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask, PairInput};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let input = PairInput { x: &[1.0, 2.0, f64::NAN, 3.0], y: &[3.0, 2.0, f64::NAN, 1.0] };
/// approx::assert_abs_diff_eq!(correlation(&batch, input)?, -1.0, epsilon = 1e-15);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn correlation<R: Real>(batch: &Batch<'_>, input: PairInput<'_, R>) -> Result<f64> {
    CoMoments::of(batch, input)?.correlation()
}
