use crate::{
    error::{check_len, check_positive, Result},
    layout::Batch,
    math::sqrt,
    real::Real,
    reduce::{fold_row, map_row, row_total},
    simd::multiversion,
    statistics::{Divisor, MeanConfig},
};

/// Mean over the kept tokens of each sequence.
///
/// ```text
/// out_i = Σ_t x_t / n_i        n_i kept tokens, or n_i + 1e-8 with Divisor::CountPlusEpsilon
/// ```
///
/// **Alignment.** `values` any; `out` has one entry per sequence.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens gets 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** verl 0.9.1 `masked_mean` with `axis=-1` is `CountPlusEpsilon`; OpenRLHF 0.11 is `Count`, NaN for an
/// empty row.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask, MeanConfig};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, false, false]))?;
/// let mut out = [9.0; 2];
/// row_means(&batch, &[1.0, 2.0, f64::NAN, f64::NAN], &MeanConfig::default(), &mut out)?;
/// assert_eq!(out, [1.5, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn row_means<R: Real>(batch: &Batch<'_>, values: &[R], config: &MeanConfig, out: &mut [R]) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_len("out", out, batch.sequences())?;
    means(batch, values, config.divisor, out);
    Ok(())
}

#[multiversion]
fn means<R: Real>(batch: &Batch<'_>, values: &[R], divisor: Divisor, out: &mut [R]) {
    for (row, out) in batch.rows().zip(out) {
        let sum = row_total(&row, values);
        *out = R::narrow(match row.kept() {
            0 => sum,
            kept => sum / divisor.of(kept as f64),
        });
    }
}

/// How [`row_normalize`] guards its divisor.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct RowNormalizeConfig {
    /// The lower bound of the variance; positive and finite, default 1e-8.
    pub floor: f64,
}

impl Default for RowNormalizeConfig {
    fn default() -> Self {
        Self { floor: 1e-8 }
    }
}

/// Each sequence normalised separately to mean 0 and variance 1.
///
/// ```text
/// out_t = (x_t − μ_i) / √max(Σ_t (x_t − μ_i)² / n_i, floor)
/// ```
///
/// A constant sequence gives 0.
///
/// **Alignment.** The same in and out.
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if the floor is not positive and finite.
///
/// **Reference.** OpenRLHF 0.11 `masked_normalize`, floor 1e-8.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 3)?, Mask::new(&[true, false, true, true, true, true]))?;
/// let mut out = [9.0; 6];
/// row_normalize(&batch, &[1.0, f64::NAN, 3.0, 5.0, 5.0, 5.0], &RowNormalizeConfig::default(), &mut out)?;
/// assert_eq!(out, [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn row_normalize<R: Real>(
    batch: &Batch<'_>,
    values: &[R],
    config: &RowNormalizeConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_positive::<R>("floor", config.floor)?;
    normalized(batch, values, config.floor, out);
    Ok(())
}

#[multiversion]
fn normalized<R: Real>(batch: &Batch<'_>, values: &[R], floor: f64, out: &mut [R]) {
    for row in batch.token_rows() {
        let n = row.kept().max(1) as f64;
        let sum = row_total(&row, values);
        let mean = sum / n;
        let [squares] = fold_row(&row, [values], [], |[x]| {
            let deviation = x.widen() - mean;
            ([], [deviation * deviation])
        });
        let variance = squares / n;
        let scale = 1.0 / sqrt(if variance < floor { floor } else { variance });
        map_row(&row, [values], out, |[x]| R::narrow((x.widen() - mean) * scale));
    }
}
