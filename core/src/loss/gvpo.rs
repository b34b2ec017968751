use super::PolicyLossInput;
use crate::{
    error::{check_count, check_len, check_positive, Error, Result},
    groups::{group_scratch_len, Groups},
    layout::{Batch, Row},
    real::Real,
    reduce::{row_difference, row_total, Sum},
    statistics::Moments,
};

/// The settings of [`gvpo`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GvpoConfig {
    /// The strength β of the implicit KL to the policy that sampled; positive, default 0.1.
    pub beta: f64,
}

impl Default for GvpoConfig {
    fn default() -> Self {
        Self { beta: 0.1 }
    }
}

/// Within each prompt, fits the differences of the sequences' log-ratios to the differences of their advantages.
///
/// ```text
/// u_i = β Σ_t (log π_t − log π_old,t)        ū = mean of u over the prompt, a constant        Ā_i = mean_t A_t
/// loss = Σ_i ½ ((u_i − ū) − Ā_i)² / (K − 1)        ∂loss/∂log π_t = β ((u_i − ū) − Ā_i) / (K − 1)
/// ```
///
/// with K the number of samples of i's prompt.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0. A sequence without kept tokens has `u = 0` and `Ā = 0`.
///
/// **Errors.** [`Error::Length`] if a slice or the groups do not fit `batch`, or `scratch` does not have
/// [`group_scratch_len`](crate::group_scratch_len) entries;
/// [`Error::Config`] if β is not positive; [`Error::TooFew`] if a prompt has a single sample.
///
/// **Reference.** Zhang et al. 2025 (GVPO), arXiv:2504.19599; verl-recipe (2026-08) `gvpo`. Rollout weights are not
/// used.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Groups, Layout, Mask, Moments};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, false, true, true]))?;
/// let log_probs = [-0.5, f64::NAN, -0.25, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, -1.0, -1.0]);
/// let (mut scratch, mut grad) = ([Moments::default(); 1], [9.0; 4]);
/// let loss = gvpo(&batch, &Groups::from_ids(&[0, 0])?, input, &GvpoConfig { beta: 0.5 }, &mut scratch, &mut grad)?;
/// assert_eq!(loss, 1.0);
/// assert_eq!(grad, [-0.5, 0.0, 0.5, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn gvpo<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: PolicyLossInput<'_, R>,
    config: &GvpoConfig,
    scratch: &mut [Moments],
    grad: &mut [R],
) -> Result<f64> {
    input.check(batch, grad)?;
    check_count("groups", groups.sequences(), batch.sequences())?;
    check_len("scratch", scratch, group_scratch_len(groups))?;
    check_positive::<R>("beta", config.beta)?;
    scratch.fill(Moments::default());
    for group in groups.ids() {
        scratch[group].count += 1;
    }
    if let Some(lonely) = scratch.iter().find(|moments| moments.count == 1) {
        return Err(Error::TooFew { what: "groups", needed: 2, got: lonely.count as usize });
    }
    let log_ratio = |row: &Row<'_>| config.beta * row_difference(row, input.log_probs, input.old_log_probs);
    for (row, group) in batch.token_rows().zip(groups.ids()) {
        scratch[group].mean += log_ratio(&row) / scratch[group].count as f64;
    }
    let mut loss = Sum::default();
    for (row, group) in batch.token_rows().zip(groups.ids()) {
        let moments = scratch[group];
        let advantages = row_total(&row, input.advantages);
        let error = log_ratio(&row) - moments.mean - advantages / row.kept().max(1) as f64;
        let others = (moments.count - 1) as f64;
        loss.add(0.5 * error * error / others);
        let slope = R::narrow(config.beta * error / others);
        for (grad, &keep) in row.of_mut(grad).iter_mut().zip(row.keep) {
            *grad = if keep { slope } else { R::zero() };
        }
    }
    Ok(loss.value())
}
