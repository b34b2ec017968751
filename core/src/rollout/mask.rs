use crate::{
    error::{check_len, check_not_negative, check_positive, Result},
    layout::Batch,
    order::sort,
    real::Real,
    reduce::{map_row, Sum},
    rollout::{RolloutInput, Unscored},
};

/// What [`off_policy_sequence_mask`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct OffPolicyInput<'a, R> {
    /// Log-probabilities of the policy being trained.
    pub log_probs: &'a [R],
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: &'a [R],
    /// Advantages.
    pub advantages: &'a [R],
}

/// The conventions of [`off_policy_sequence_mask`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OffPolicyConfig {
    /// The mean KL a sequence may have; not negative, default 1e-4 (slime).
    pub threshold: f64,
    /// What a token without a sampler's log-probability counts; default [`Unscored::Nan`], TRL is `Ignore`.
    pub unscored: Unscored,
}

impl Default for OffPolicyConfig {
    fn default() -> Self {
        Self { threshold: 1e-4, unscored: Unscored::Nan }
    }
}

/// Drops the bad tokens of sequences the policy has left: what it would not write any more need not be unlearned.
///
/// ```text
/// k_i = Σ_t (log π_old − log π) / n_i      keep_t = A_t ≥ 0 ∨ k_i ≤ τ
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`; [`Error::Config`](crate::Error::Config) if the
/// threshold is negative or not finite.
///
/// **Reference.** DeepSeek-V3.2; TRL 1.16 `get_off_policy_mask`, with one advantage per sequence and unscored tokens ignored; slime
/// `use_opsm`. Both multiply the loss by the mask and leave its denominator as it was.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, false, true, true]))?;
/// let input = OffPolicyInput {
///     log_probs: &[-2.0, f64::NAN, -2.0, -1.0],
///     old_log_probs: &[-1.0, f64::NAN, -1.0, -1.0],
///     advantages: &[1.0, f64::NAN, -1.0, -1.0],
/// };
/// let mut keep = [true; 4];
/// off_policy_sequence_mask(&batch, input, &OffPolicyConfig::default(), &mut keep)?;
/// assert_eq!(keep, [true, false, false, false]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn off_policy_sequence_mask<R: Real>(
    batch: &Batch<'_>,
    input: OffPolicyInput<'_, R>,
    config: &OffPolicyConfig,
    keep: &mut [bool],
) -> Result<()> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("advantages", input.advantages, batch.tokens())?;
    check_len("keep", keep, batch.tokens())?;
    check_not_negative("threshold", config.threshold)?;
    for row in batch.rows() {
        let [sum] = map_row(&row, [input.log_probs, input.old_log_probs], [], |[new, old]| {
            let k = (old - new).widen();
            ([], [if config.unscored == Unscored::Ignore && k.is_nan() { 0.0 } else { k }])
        });
        let near = sum / row.kept().max(1) as f64 <= config.threshold;
        let slots = row.keep.iter().zip(row.of(input.advantages));
        for (keep, (&kept, &advantage)) in row.of_mut(keep).iter_mut().zip(slots) {
            *keep = kept && (near || advantage >= R::zero());
        }
    }
    Ok(())
}

/// Drops tokens that trainer and sampler score too differently.
///
/// ```text
/// keep = ½ (log π_old − log π_rollout)² ≤ τ
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped. A NaN drops its token.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`; [`Error::Config`](crate::Error::Config) if τ is
/// negative or not finite.
///
/// **Reference.** TorchRL (2026), with the policy being trained for π_old.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RolloutInput { old_log_probs: &[-1.0, f64::NAN, -2.0], rollout_log_probs: &[-1.5, f64::NAN, -1.0] };
/// let mut keep = [true; 3];
/// kl_mask(&batch, input, 0.125, &mut keep)?;
/// assert_eq!(keep, [true, false, false]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_mask<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>, tau: f64, keep: &mut [bool]) -> Result<()> {
    input.check(batch)?;
    check_len("keep", keep, batch.tokens())?;
    check_not_negative("tau", tau)?;
    let pairs = input.old_log_probs.iter().zip(input.rollout_log_probs);
    for ((keep, &kept), (&old, &rollout)) in keep.iter_mut().zip(batch.mask().as_slice()).zip(pairs) {
        *keep = kept && 0.5 * square(old, rollout) <= tau;
    }
    Ok(())
}

fn square<R: Real>(old: R, rollout: R) -> f64 {
    let delta = (rollout - old).widen();
    delta * delta
}

/// Drops the tokens that trainer and sampler score most differently, until the rest agree on average.
///
/// ```text
/// x = (log π_rollout − log π_old)²      drop the largest x, as few as make the mean of the rest < τ; never the last one
/// ```
///
/// Of equal x the earlier slots are dropped first. NaN counts as larger than every number.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`, or `scratch` has not one entry per kept token;
/// [`Error::Config`](crate::Error::Config) if τ is not positive and finite.
///
/// **Reference.** AReaL (2026) `m2po_loss`, with its proximal policy for π_old.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, false, true, true]))?;
/// let input = RolloutInput { old_log_probs: &[-1.0, f64::NAN, -3.0, -1.0], rollout_log_probs: &[-1.5, f64::NAN, -1.0, -1.0] };
/// let (mut scratch, mut keep) = ([0.0; 3], [true; 4]);
/// m2po_mask(&batch, input, 0.2, &mut scratch, &mut keep)?;
/// assert_eq!(keep, [true, false, false, true]);        // 4, ¼ and 0: without the 4 the mean is ⅛
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn m2po_mask<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    tau: f64,
    scratch: &mut [f64],
    keep: &mut [bool],
) -> Result<()> {
    input.check(batch)?;
    check_len("scratch", scratch, batch.kept())?;
    check_len("keep", keep, batch.tokens())?;
    check_positive("tau", tau)?;
    let pairs = || input.old_log_probs.iter().zip(input.rollout_log_probs).zip(batch.mask().as_slice());
    let kept = pairs().filter(|(_, &keep)| keep).map(|((&old, &rollout), _)| square(old, rollout));
    for (slot, x) in scratch.iter_mut().zip(kept) {
        // one NaN is like another: the sign of a NaN would move it to the other end of the order
        *slot = if x.is_nan() { f64::NAN } else { x };
    }
    sort(scratch, f64::total_cmp);
    let (mut sum, mut survivors) = (Sum::default(), 1);
    for (index, &x) in scratch.iter().enumerate() {
        sum.add(x);
        // the means of ever more of the smallest never fall: the last one below τ is the largest set
        let mean = sum.value() / (index + 1) as f64;
        if mean < tau {
            survivors = index + 1;
        }
    }
    let Some(&cut) = scratch.get(survivors - 1) else {
        keep.fill(false);
        return Ok(());
    };
    let equal = |x: f64| x == cut || (x.is_nan() && cut.is_nan());
    let mut surplus = scratch[survivors..].iter().filter(|&&x| equal(x)).count();
    for (keep, ((&old, &rollout), &kept)) in keep.iter_mut().zip(pairs()) {
        *keep = false;
        if kept {
            let x = square(old, rollout);
            if equal(x) && surplus > 0 {
                surplus -= 1;
            } else {
                *keep = equal(x) || x < cut || (cut.is_nan() && !x.is_nan());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    fn kept_by_m2po(deltas: &[f64], tau: f64) -> Vec<bool> {
        let mask = vec![true; deltas.len()];
        let batch = Batch::new(Layout::padded(1, deltas.len()).unwrap(), Mask::new(&mask)).unwrap();
        let zeros = vec![0.0; deltas.len()];
        let (mut scratch, mut keep) = (zeros.clone(), mask.clone());
        let input = RolloutInput { old_log_probs: &zeros, rollout_log_probs: deltas };
        m2po_mask(&batch, input, tau, &mut scratch, &mut keep).unwrap();
        keep
    }

    #[test]
    fn m2po_drops_as_few_as_it_can() {
        assert_eq!(kept_by_m2po(&[], 1.0), []);
        assert_eq!(kept_by_m2po(&[1.0, 1.0], 2.0), [true, true]);
        assert_eq!(kept_by_m2po(&[3.0, 2.0], 1.0), [false, true]);
        assert_eq!(kept_by_m2po(&[1.0, -1.0, 0.0], 0.6), [false, true, true]);
        assert_eq!(kept_by_m2po(&[f64::NAN, 0.1], 1.0), [false, true]);
    }
}
