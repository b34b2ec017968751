use super::{group::check_sequences, returns::write_returns, ReturnsConfig, TopTwo, WeightedSum};
use crate::{
    error::{check_len, check_not_negative, checked_size, Result},
    groups::{group_scratch_len, Groups},
    layout::Batch,
    math::exp,
    real::Real,
};

#[cfg(test)]
mod tests;

/// The baseline of the longest answer of a prompt in the slots where all other answers have ended.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ZeroTail {
    /// Nothing: the baseline is 0 from the second longest answer's length on, if one answer is longer than all others.
    /// verl 0.9.1 (`handle_zero_tail`, its default).
    #[default]
    NoBaseline,
    /// Its own return, which makes the advantage nearly 0. verl's default until January 2026.
    OwnReturn,
}

/// What [`optimal_token_baseline`] and [`tir_optimal_token_baseline`] read.
#[derive(Clone, Copy, Debug)]
pub struct OptimalBaselineInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// Log-probabilities of the tokens under the trained policy, before the update; action-aligned.
    pub old_log_probs: &'a [R],
    /// `Σ_v π(v)²` of the distribution each token was drawn from, action-aligned.
    pub sum_pi_squared: &'a [R],
    /// Importance weights of the tokens, action-aligned; `None` if the sampler is the policy.
    pub is_weights: Option<&'a [R]>,
}

impl<'a, R> OptimalBaselineInput<'a, R> {
    /// The sampler is the policy: no importance weights.
    pub const fn new(rewards: &'a [R], old_log_probs: &'a [R], sum_pi_squared: &'a [R]) -> Self {
        Self { rewards, old_log_probs, sum_pi_squared, is_weights: None }
    }
}

/// The conventions of [`optimal_token_baseline`] and [`tir_optimal_token_baseline`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct OptimalBaselineConfig {
    /// The baseline in the tail of the longest answer; default none.
    pub zero_tail: ZeroTail,
    /// The small number ε ≥ 0 added to the weights of each column; default 1e-8.
    pub epsilon: f64,
}

impl Default for OptimalBaselineConfig {
    fn default() -> Self {
        Self { zero_tail: ZeroTail::NoBaseline, epsilon: 1e-8 }
    }
}

/// Working memory of the optimal token baselines; the content before a call does not matter.
#[derive(Debug)]
pub struct OptimalBaselineScratch<'a> {
    /// [`optimal_baseline_scratch_len`] entries.
    pub columns: &'a mut [WeightedSum],
    /// [`group_scratch_len`](crate::group_scratch_len) entries.
    pub lengths: &'a mut [TopTwo],
}

/// What the optimal token baselines write.
#[derive(Debug)]
pub struct OptimalBaselineOutput<'a, R> {
    /// Advantages, action-aligned.
    pub advantages: &'a mut [R],
    /// Returns, state-aligned.
    pub returns: &'a mut [R],
}

/// Entries of [`OptimalBaselineScratch::columns`]: groups × slots of the longest sequence.
///
/// # Errors
///
/// [`Error::Overflow`](crate::Error::Overflow) if that does not fit into a `usize`.
pub fn optimal_baseline_scratch_len(batch: &Batch<'_>, groups: &Groups<'_>) -> Result<usize> {
    checked_size("groups × longest sequence", groups.count(), longest(batch))
}

fn longest(batch: &Batch<'_>) -> usize {
    batch.token_rows().map(|row| row.keep.len()).max().unwrap_or(0)
}

/// A separate baseline for every column: the mean return of the prompt's answers at that position, weighted by the size
/// of their accumulated gradients.
///
/// ```text
/// s_t = (1 − 2 e^{log π_t} + Σ_v π(v)²) w_t²        C_t = s_0 + … + s_t        G_t = r_t + G_{t+1}
/// b_t = Σ_j G_{j,t} C_{j,t} / (Σ_j C_{j,t} + ε)      A_t = G_t − b_t
/// j over the prompt's samples that keep slot t
/// ```
///
/// `w` are the importance weights, 1 if there are none. A group of one has no baseline: `A = G`.
///
/// **Alignment.** `returns` is state-aligned, all other token slices action-aligned. Columns are *slots*: the `t`-th
/// slot of each sequence.
///
/// **Mask.** Dropped slots are never read, do not contribute to a column, and get 0. With [`ZeroTail::NoBaseline`] the
/// tail begins at the slot whose index is the second largest number of *kept* tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice or `groups` does not fit `batch`, or a scratch slice
/// does not have its length; [`Error::Config`](crate::Error::Config) if ε is negative or not finite.
///
/// **Reference.** verl 0.9.1 `optimal_token_baseline`; its returns continue through dropped slots, here they are 0.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Groups, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let groups = Groups::contiguous(&[2])?;
/// let (mut columns, mut lengths) = ([WeightedSum::default(); 2], [TopTwo::default(); 1]);
/// let (mut advantages, mut returns) = ([9.0; 4], [9.0; 4]);
/// assert_eq!(optimal_baseline_scratch_len(&batch, &groups)?, 2);
/// optimal_token_baseline(
///     &batch,
///     &groups,
///     OptimalBaselineInput::new(
///         &[0.0, 1.0, 0.0, f64::NAN],
///         &[0.0, 0.0, 0.0, f64::NAN],
///         &[2.0, 2.0, 4.0, f64::NAN],
///     ),
///     &OptimalBaselineConfig { epsilon: 0.0, ..Default::default() },
///     OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths },
///     OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns },
/// )?;
/// assert_eq!(returns, [1.0, 1.0, 0.0, 0.0]);
/// // weights 1 and 3 in the first column; no other sample in the second
/// assert_eq!(advantages, [0.75, 1.0, -0.25, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn optimal_token_baseline<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: OptimalBaselineInput<'_, R>,
    config: &OptimalBaselineConfig,
    scratch: OptimalBaselineScratch<'_>,
    output: OptimalBaselineOutput<'_, R>,
) -> Result<()> {
    evaluate(batch, groups, input, config, scratch, output, Column::Slot)
}

/// [`optimal_token_baseline`] for answers that contain tool calls: columns count only kept tokens.
///
/// ```text
/// as optimal_token_baseline, with column k = the k-th kept token of each sequence
/// ```
///
/// Without dropped slots between kept ones the two are equal, except that here samples without any kept token do not
/// count as members of their group.
///
/// **Alignment.** `returns` is state-aligned, all other token slices action-aligned.
///
/// **Mask.** Dropped slots are never read, are not counted, and get 0.
///
/// **Errors.** As [`optimal_token_baseline`].
///
/// **Reference.** verl 0.9.1 `tir_optimal_token_baseline`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Groups, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, false, true]))?;
/// let groups = Groups::contiguous(&[2])?;
/// let (mut columns, mut lengths) = ([WeightedSum::default(); 2], [TopTwo::default(); 1]);
/// let (mut advantages, mut returns) = ([9.0; 4], [9.0; 4]);
/// tir_optimal_token_baseline(
///     &batch,
///     &groups,
///     OptimalBaselineInput::new(
///         &[0.0, 1.0, f64::NAN, 0.0],
///         &[0.0, 0.0, f64::NAN, 0.0],
///         &[2.0, 2.0, f64::NAN, 4.0],
///     ),
///     &OptimalBaselineConfig { epsilon: 0.0, ..Default::default() },
///     OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths },
///     OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns },
/// )?;
/// assert_eq!(advantages, [0.75, 1.0, 0.0, -0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn tir_optimal_token_baseline<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: OptimalBaselineInput<'_, R>,
    config: &OptimalBaselineConfig,
    scratch: OptimalBaselineScratch<'_>,
    output: OptimalBaselineOutput<'_, R>,
) -> Result<()> {
    evaluate(batch, groups, input, config, scratch, output, Column::Kept)
}

/// Which tokens of different answers share a baseline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    /// Those in the same slot.
    Slot,
    /// Those with the same number of kept tokens before them.
    Kept,
}

fn evaluate<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: OptimalBaselineInput<'_, R>,
    config: &OptimalBaselineConfig,
    scratch: OptimalBaselineScratch<'_>,
    output: OptimalBaselineOutput<'_, R>,
    column: Column,
) -> Result<()> {
    let width = longest(batch);
    check_sequences(batch, groups)?;
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("sum_pi_squared", input.sum_pi_squared, batch.tokens())?;
    if let Some(weights) = input.is_weights {
        check_len("is_weights", weights, batch.tokens())?;
    }
    check_len("columns", scratch.columns, optimal_baseline_scratch_len(batch, groups)?)?;
    check_len("lengths", scratch.lengths, group_scratch_len(groups))?;
    check_len("advantages", output.advantages, batch.tokens())?;
    check_len("returns", output.returns, batch.tokens())?;
    check_not_negative::<R>("epsilon", config.epsilon)?;
    write_returns(batch, input.rewards, |_| R::zero(), &ReturnsConfig::default(), output.returns);
    scratch.columns.fill(WeightedSum::default());
    scratch.lengths.fill(TopTwo::default());
    for (sequence, (row, group)) in batch.rows().zip(groups.ids()).enumerate() {
        let returns = row.of(output.returns);
        let (log_probs, squares) = (row.of(input.old_log_probs), row.of(input.sum_pi_squared));
        let weights = input.is_weights.map(|weights| row.of(weights));
        let (mut path, mut kept) = (0.0, 0);
        for t in (0..row.keep.len()).filter(|&t| row.keep[t]) {
            let norm = 1.0 - 2.0 * exp(log_probs[t]).widen() + squares[t].widen();
            let weight = weights.map_or(1.0, |weights| weights[t].widen());
            path += norm * (weight * weight);
            let at = if column == Column::Slot { t } else { kept };
            scratch.columns[group * width + at].add(returns[t].widen(), path);
            kept += 1;
        }
        if kept > 0 || column == Column::Slot {
            scratch.lengths[group].add(sequence, kept as f64);
        }
    }
    for (sequence, (row, group)) in batch.rows().zip(groups.ids()).enumerate() {
        let (advantages, returns) = (row.of_mut(output.advantages), row.of(output.returns));
        let lengths = &scratch.lengths[group];
        let alone =
            config.zero_tail == ZeroTail::NoBaseline && sequence == lengths.first && lengths.largest > lengths.second;
        let mut kept = 0;
        for (t, &keep) in row.keep.iter().enumerate() {
            if !keep {
                advantages[t] = R::zero();
                continue;
            }
            let at = if column == Column::Slot { t } else { kept };
            kept += 1;
            advantages[t] = if lengths.count < 2 || (alone && at as f64 >= lengths.second) {
                returns[t]
            } else {
                let column = &scratch.columns[group * width + at];
                R::narrow(returns[t].widen() - column.sum / (column.weight + config.epsilon))
            };
        }
    }
    Ok(())
}
