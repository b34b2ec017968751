use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
};

/// How many equally weighted tokens the weighted ones are equivalent to.
///
/// ```text
/// (Σ_t w_t)² / Σ_t w_t²
/// ```
///
/// From 1 (a single nonzero weight) to the number of kept tokens (all equal); 0 if every weight is 0.
///
/// **Alignment.** Any; that of the weights.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`] if `weights` does not fit `batch`; [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** Kish 1965. Divided by the number of kept tokens it is verl 0.9.1's `rollout_is_eff_sample_size`, up
/// to its 1e-8.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// assert_eq!(effective_sample_size(&batch, &[2.0, 2.0, f64::NAN, 0.0])?, 2.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn effective_sample_size<R: Real>(batch: &Batch<'_>, weights: &[R]) -> Result<f64> {
    check_len("weights", weights, batch.tokens())?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    let [sum, squares] = power_sums(batch, weights);
    Ok(if squares == 0.0 { 0.0 } else { sum * sum / squares })
}

#[multiversion]
fn power_sums<R: Real>(batch: &Batch<'_>, weights: &[R]) -> [f64; 2] {
    let mut sums = [Sum::default(); 2];
    for row in batch.token_rows() {
        let parts = fold_row(&row, [weights], [], |[w]| ([], [w.widen(), w.widen() * w.widen()]));
        Sum::add_each(&mut sums, &parts);
    }
    Sum::values(&sums)
}
