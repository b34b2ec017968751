use crate::{
    error::{check_len, check_not_negative, check_positive, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, Sum},
    rollout::{RolloutInput, Unscored},
};

/// What [`off_policy_sequence_mask`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct OffPolicyInput<'a, R> {
    /// Log-probabilities under the policy being trained.
    pub log_probs: &'a [R],
    /// Log-probabilities under the policy that sampled the tokens.
    pub old_log_probs: &'a [R],
    /// Advantages.
    pub advantages: &'a [R],
}

/// The conventions of [`off_policy_sequence_mask`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct OffPolicyConfig {
    /// The largest mean KL of a sequence; not negative, default 1e-4 (slime).
    pub threshold: f64,
    /// How a token without a log-probability from the sampler is treated; default [`Unscored::Nan`], TRL is `Ignore`.
    pub unscored: Unscored,
}

impl Default for OffPolicyConfig {
    fn default() -> Self {
        Self { threshold: 1e-4, unscored: Unscored::Nan }
    }
}

/// Drops tokens with a negative advantage in sequences that the policy has moved away from: it would no longer generate
/// them, so they need not be unlearned.
///
/// ```text
/// k_i = Σ_t (log π_old − log π) / n_i      keep_t = A_t ≥ 0 ∨ k_i ≤ τ
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if the threshold is negative or not finite.
///
/// **Reference.** DeepSeek-V3.2; TRL 1.16 `get_off_policy_mask`, with one advantage per sequence and unscored tokens
/// ignored; slime `use_opsm`. Both multiply the loss by the mask and leave its denominator unchanged.
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
    check_not_negative::<R>("threshold", config.threshold)?;
    for row in batch.token_rows() {
        let [sum] = fold_row(&row, [input.log_probs, input.old_log_probs], [], |[new, old]| {
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

/// The threshold of [`kl_mask`]. There is no default: TorchRL has none either.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct KlMaskConfig {
    /// τ, the largest `½ (log π_old − log π_rollout)²`; not negative.
    pub tau: f64,
}

/// Drops tokens whose log-probabilities differ too much between trainer and sampler.
///
/// ```text
/// keep = ½ (log π_old − log π_rollout)² ≤ τ
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped. A token with NaN is dropped.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if τ is negative or not finite.
///
/// **Reference.** TorchRL (2026), with the policy being trained as π_old.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RolloutInput { old_log_probs: &[-1.0, f64::NAN, -2.0], rollout_log_probs: &[-1.5, f64::NAN, -1.0] };
/// let mut keep = [true; 3];
/// kl_mask(&batch, input, &KlMaskConfig { tau: 0.125 }, &mut keep)?;
/// assert_eq!(keep, [true, false, false]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_mask<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &KlMaskConfig,
    keep: &mut [bool],
) -> Result<()> {
    input.check(batch)?;
    check_len("keep", keep, batch.tokens())?;
    check_not_negative::<R>("tau", config.tau)?;
    let pairs = input.old_log_probs.iter().zip(input.rollout_log_probs);
    for ((keep, &kept), (&old, &rollout)) in keep.iter_mut().zip(batch.mask().as_slice()).zip(pairs) {
        *keep = kept && 0.5 * square(old, rollout) <= config.tau;
    }
    Ok(())
}

pub(crate) fn square<R: Real>(old: R, rollout: R) -> f64 {
    let delta = (rollout - old).widen();
    delta * delta
}

/// The threshold of [`m2po_mask`]. There is no default: the mask is off in AReaL.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct M2poConfig {
    /// τ, the exclusive upper bound of the mean of `(log π_rollout − log π_old)²`; positive.
    pub tau: f64,
}

/// Entries of the scratch of [`m2po_mask`]: one per kept token.
pub const fn m2po_scratch_len(batch: &Batch<'_>) -> usize {
    batch.kept()
}

/// Drops the tokens whose log-probabilities differ most between trainer and sampler, until the rest agree on average.
///
/// ```text
/// x = (log π_rollout − log π_old)²
/// drop the largest x, as few as make the mean of the rest < τ; never the last one
/// ```
///
/// Among equal x, earlier slots are dropped first. NaN counts as larger than every number.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`, or `scratch` does not have
/// [`m2po_scratch_len`] entries; [`Error::Config`](crate::Error::Config) if τ is not positive and finite.
///
/// **Reference.** AReaL (2026) `m2po_loss`, with its proximal policy as π_old.
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, false, true, true]))?;
/// let input = RolloutInput {
///     old_log_probs: &[-1.0, f64::NAN, -3.0, -1.0],
///     rollout_log_probs: &[-1.5, f64::NAN, -1.0, -1.0],
/// };
/// let (mut scratch, mut keep) = ([0.0; 3], [true; 4]);
/// m2po_mask(&batch, input, &M2poConfig { tau: 0.2 }, &mut scratch, &mut keep)?;
/// assert_eq!(keep, [true, false, false, true]);        // 4, ¼ and 0: without the 4 the mean is ⅛
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn m2po_mask<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &M2poConfig,
    scratch: &mut [f64],
    keep: &mut [bool],
) -> Result<()> {
    input.check(batch)?;
    check_len("scratch", scratch, m2po_scratch_len(batch))?;
    check_len("keep", keep, batch.tokens())?;
    check_positive::<R>("tau", config.tau)?;
    let pairs = || input.old_log_probs.iter().zip(input.rollout_log_probs).zip(batch.mask().as_slice());
    let kept = pairs().filter(|(_, &keep)| keep).map(|((&old, &rollout), _)| square(old, rollout));
    for (slot, x) in scratch.iter_mut().zip(kept) {
        // all NaN become the same: a negative NaN would be sorted to the other end
        *slot = if x.is_nan() { f64::NAN } else { x };
    }
    scratch.sort_unstable_by(f64::total_cmp);
    let (mut sum, mut survivors) = (Sum::default(), 1);
    for (index, &x) in scratch.iter().enumerate() {
        sum.add(x);
        // the mean of the n smallest never falls as n grows, so the last n with a mean below τ gives the largest set
        let mean = sum.value() / (index + 1) as f64;
        if mean < config.tau {
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
        m2po_mask(&batch, input, &M2poConfig { tau }, &mut scratch, &mut keep).unwrap();
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
