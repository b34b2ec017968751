use crate::{
    error::{check_len, Result},
    layout::Batch,
    parallel::{in_order, Work},
    real::Real,
    reduce::{map_row, row_total},
    simd::multiversion,
};

/// One number per sequence, copied to each of its kept tokens.
///
/// ```text
/// out[i, t] = values_i
/// ```
///
/// **Alignment.** `values` has one entry per sequence, `out` is action-aligned.
///
/// **Mask.** Dropped slots get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** Every group estimator of verl 0.9.1, TRL 1.16 and OpenRLHF 0.11 spreads its advantages over the
/// tokens in this way.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::broadcast, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::packed(&[0, 2, 3])?, Mask::new(&[true, false, true]))?;
/// let mut out = [9.0; 3];
/// broadcast(&batch, &[0.5, -0.5], &mut out)?;
/// assert_eq!(out, [0.5, 0.0, -0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn broadcast<R: Real>(batch: &Batch<'_>, values: &[R], out: &mut [R]) -> Result<()> {
    check_len("values", values, batch.sequences())?;
    check_len("out", out, batch.tokens())?;
    in_order(
        batch,
        Work::ONE,
        [out],
        |part, [out], _| spread(&part.batch, &values[part.sequences.clone()], out),
        |()| (),
    );
    Ok(())
}

/// The sum of the kept token rewards of each sequence: its score.
///
/// ```text
/// out_i = Σ_t r[i, t]
/// ```
///
/// **Alignment.** `rewards` is action-aligned, `out` has one entry per sequence.
///
/// **Mask.** Dropped slots are never read; a sequence without kept tokens gets 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** verl 0.9.1 sums over *all* slots, dropped ones too; pass a batch that keeps every slot to get that.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::sequence_sums, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let mut scores = [9.0; 2];
/// sequence_sums(&batch, &[0.5, 1.0, -1.0, f64::NAN], &mut scores)?;
/// assert_eq!(scores, [1.5, -1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn sequence_sums<R: Real>(batch: &Batch<'_>, rewards: &[R], out: &mut [R]) -> Result<()> {
    check_len("rewards", rewards, batch.tokens())?;
    check_len("out", out, batch.sequences())?;
    let mut out = out.iter_mut();
    in_order::<R, _, 0>(
        batch,
        Work::ONE,
        [],
        |part, [], report| row_sums(&part.batch, part.of(rewards), report),
        |sum: f64| {
            if let Some(out) = out.next() {
                *out = R::narrow(sum);
            }
        },
    );
    Ok(())
}

#[multiversion(avx512)]
fn spread<R: Real>(batch: &Batch<'_>, values: &[R], out: &mut [R]) {
    for (row, &value) in batch.rows().zip(values) {
        map_row(&row, [], out, |[]| value);
    }
}

#[multiversion(avx512)]
fn row_sums<R: Real>(batch: &Batch<'_>, rewards: &[R], report: &mut dyn FnMut(f64)) {
    for row in batch.rows() {
        let sum = row_total(&row, rewards);
        report(sum);
    }
}
