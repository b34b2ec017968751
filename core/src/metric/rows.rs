use crate::{
    error::{check_len, check_positive, Result},
    layout::Batch,
    math::sqrt,
    real::Real,
    reduce::{map_row, row_total},
    simd::multiversion,
    statistics::Divisor,
};

/// Sum over the kept tokens of each sequence.
///
/// ```text
/// out_i = Σ_t x_t
/// ```
///
/// **Alignment.** `values` whichever; `out` has one entry per sequence.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens gets 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** verl 0.9.1 `masked_sum` with `axis=-1`.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let mut out = [9.0; 2];
/// row_sums(&batch, &[1.0, 2.0, 4.0, f64::NAN], &mut out)?;
/// assert_eq!(out, [3.0, 4.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn row_sums<R: Real>(batch: &Batch<'_>, values: &[R], out: &mut [R]) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_len("out", out, batch.sequences())?;
    sums(batch, values, out, None);
    Ok(())
}

/// Mean over the kept tokens of each sequence.
///
/// ```text
/// out_i = Σ_t x_t / n_i        n_i kept tokens, or n_i + 1e-8 with Divisor::CountPlusEpsilon
/// ```
///
/// **Alignment.** `values` whichever; `out` has one entry per sequence.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens gets 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** verl 0.9.1 `masked_mean` with `axis=-1` is `CountPlusEpsilon`; OpenRLHF 0.11 is `Count`, NaN for an empty row.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, false, false]))?;
/// let mut out = [9.0; 2];
/// row_means(&batch, &[1.0, 2.0, f64::NAN, f64::NAN], Divisor::Count, &mut out)?;
/// assert_eq!(out, [1.5, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn row_means<R: Real>(batch: &Batch<'_>, values: &[R], divisor: Divisor, out: &mut [R]) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_len("out", out, batch.sequences())?;
    sums(batch, values, out, Some(divisor));
    Ok(())
}

multiversion! {
    fn sums<R: Real>(batch: &Batch<'_>, values: &[R], out: &mut [R], divisor: Option<Divisor>) -> () {
        for (row, out) in batch.rows().zip(out) {
            let sum = row_total(&row, values);
            *out = R::narrow(match (divisor, row.kept()) {
                (Some(divisor), kept) if kept > 0 => sum / divisor.of(kept as f64),
                _ => sum,
            });
        }
    }
}

/// Each sequence brought to mean 0 and variance 1 by itself.
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
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`; [`Error::Config`](crate::Error::Config) if the floor is
/// not positive and finite.
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
/// row_normalize(&batch, &[1.0, f64::NAN, 3.0, 5.0, 5.0, 5.0], 1e-8, &mut out)?;
/// assert_eq!(out, [-1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn row_normalize<R: Real>(batch: &Batch<'_>, values: &[R], floor: f64, out: &mut [R]) -> Result<()> {
    check_len("values", values, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_positive("floor", floor)?;
    normalized(batch, values, floor, out);
    Ok(())
}

multiversion! {
    fn normalized<R: Real>(batch: &Batch<'_>, values: &[R], floor: f64, out: &mut [R]) -> () {
        for row in batch.rows() {
            let n = row.kept().max(1) as f64;
            let sum = row_total(&row, values);
            let mean = sum / n;
            let [squares] = map_row(&row, [values], [], |[x]| {
                let deviation = x.widen() - mean;
                ([], [deviation * deviation])
            });
            let variance = squares / n;
            let scale = 1.0 / sqrt(if variance < floor { floor } else { variance });
            map_row(&row, [values], [&mut *out], |[x]| ([R::narrow((x.widen() - mean) * scale)], []));
        }
    }
}
