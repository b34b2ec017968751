use super::{returns::write_returns, ReturnsConfig};
use crate::{error::check_len, error::Result, layout::Batch, real::Real};

/// What [`remax`] reads.
#[derive(Clone, Copy, Debug)]
pub struct RemaxInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// One per sequence: the score of the greedy answer to the same prompt.
    pub baselines: &'a [R],
}

/// What [`remax`] writes.
#[derive(Debug)]
pub struct RemaxOutput<'a, R> {
    /// Advantages, action-aligned.
    pub advantages: &'a mut [R],
    /// Returns, state-aligned.
    pub returns: &'a mut [R],
}

/// The return of each token, minus the score of the greedy answer to the same prompt (ReMax).
///
/// ```text
/// G_t = r_t + G_{t+1}        A_t = G_t − b_i
/// ```
///
/// **Alignment.** `rewards` and `advantages` are action-aligned, `returns` state-aligned; `baselines` has one entry per
/// sequence.
///
/// **Mask.** Dropped slots are never read and get 0; `t + 1` is the next *kept* token.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** Li et al. 2024, arXiv:2310.10505. verl 0.9.1, which writes the return into dropped slots too; here
/// they are 0.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let (mut advantages, mut returns) = ([9.0; 3], [9.0; 3]);
/// remax(
///     &batch,
///     RemaxInput { rewards: &[0.25, f64::NAN, 1.0], baselines: &[0.5] },
///     RemaxOutput { advantages: &mut advantages, returns: &mut returns },
/// )?;
/// assert_eq!(returns, [1.25, 0.0, 1.0]);
/// assert_eq!(advantages, [0.75, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn remax<R: Real>(batch: &Batch<'_>, input: RemaxInput<'_, R>, output: RemaxOutput<'_, R>) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("baselines", input.baselines, batch.sequences())?;
    check_len("advantages", output.advantages, batch.tokens())?;
    check_len("returns", output.returns, batch.tokens())?;
    write_returns(batch, input.rewards, |_| R::zero(), &ReturnsConfig::default(), output.returns);
    for (row, &baseline) in batch.rows().zip(input.baselines) {
        let (advantages, returns) = (row.of_mut(output.advantages), row.of(output.returns));
        for (t, &keep) in row.keep.iter().enumerate() {
            advantages[t] = if keep { returns[t] - baseline } else { R::zero() };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};

    #[test]
    fn verl_0_9_1_on_kept_slots() {
        let (mut advantages, mut returns) = ([9.0; 20], [9.0; 20]);
        let input = RemaxInput { rewards: &REWARDS, baselines: &[0.5, 0.5, -0.5, 1.0] };
        remax(&batch(), input, RemaxOutput { advantages: &mut advantages, returns: &mut returns }).unwrap();
        #[rustfmt::skip]
        assert_close(&advantages, &[
            0.5, 0.5, 0.5, 0.5, 0.0,
            0.25, 0.25, 0.0, -0.25, -0.25,
            -0.5, -0.5, 0.0, 0.0, 0.0,
            1.0, 1.0, 1.0, 1.0, 1.0,
        ]);
        assert_close(&returns[5..10], &[0.75, 0.75, 0.0, 0.25, 0.25]);
    }
}
