use super::TdInput;
use crate::{error::Result, layout::Batch, real::Real};

/// Returns that use the observed rewards for as long as they are at least as good as the critic expected (UPGO).
///
/// ```text
/// G_t = r_t + G_{t+1}    if r_{t+1} + V_{t+2} ≥ V_{t+1}, or if t + 1 is past the end
///       r_t + V_{t+1}    otherwise                          V and G after the last kept token = bootstrap
/// ```
///
/// Not discounted. The advantage is `G − V`, weighted by a clipped ratio in the loss.
///
/// **Alignment.** `rewards` is action-aligned, `values` and `out` state-aligned; `bootstrap` has one entry per
/// sequence.
///
/// **Mask.** Dropped slots are never read and get 0; `t + 1` is the next *kept* token.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** Vinyals et al. 2019 (AlphaStar), supplementary, "UPGO"; DI-engine `upgo_returns`, where equality also
/// counts.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let input = TdInput { rewards: &[0.0, 0.0, f64::NAN, 1.0], values: &[0.5, 0.75, f64::NAN, 0.5], bootstrap: &[0.0] };
/// let mut returns = [9.0; 4];
/// upgo(&batch, input, &mut returns)?;
/// // the second token fell short of 0.75: the first does not see past it
/// assert_eq!(returns, [0.75, 1.0, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn upgo<R: Real>(batch: &Batch<'_>, input: TdInput<'_, R>, out: &mut [R]) -> Result<()> {
    input.check(batch, out)?;
    for (row, &bootstrap) in batch.rows().zip(input.bootstrap) {
        let (rewards, values, out) = (row.of(input.rewards), row.of(input.values), row.of_mut(out));
        let (mut next_value, mut ahead) = (bootstrap, bootstrap);
        // G_t needs G_{t+1}
        for t in (0..row.keep.len()).rev() {
            if !row.keep[t] {
                out[t] = R::zero();
                continue;
            }
            out[t] = rewards[t] + ahead;
            // the value or return that the previous token adds to its reward
            ahead = if rewards[t] + next_value >= values[t] { out[t] } else { values[t] };
            next_value = values[t];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};

    #[test]
    fn the_trace_goes_on_where_the_next_step_was_no_worse_than_expected() {
        let mut out = [9.0; 20];
        let input = TdInput { rewards: &REWARDS, values: &VALUES, bootstrap: &[0.0; 4] };
        upgo(&batch(), input, &mut out).unwrap();
        #[rustfmt::skip]
        let expected = [
            // 0.2 → 0.3 → 0.4 → 1: no step is worse than expected
            1.0, 1.0, 1.0, 1.0, 0.0,
            // 0.5 + 0.3 ≥ 0.4 goes on; 0 + 0.2 < 0.3 is cut: 0.5 + 0.3; 0.25 ≥ 0.2 goes on: 0.25
            0.8, 0.8, 0.0, 0.25, 0.25,
            // −1 + 0 < −0.4 is cut
            -0.4, -1.0, 0.0, 0.0, 0.0,
            2.0, 2.0, 2.0, 2.0, 2.0,
        ];
        assert_close(&out, &expected);
    }
}
