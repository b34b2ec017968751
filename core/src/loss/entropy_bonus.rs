use super::{aggregate, Aggregate};
use crate::{
    error::{check_finite, check_len, Result},
    layout::Batch,
    real::Real,
};

/// How [`entropy_bonus`] weights the entropy.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct EntropyBonusConfig<'a> {
    /// The coefficient c; default 0.01. Negative to penalise entropy.
    pub coefficient: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for EntropyBonusConfig<'_> {
    fn default() -> Self {
        Self { coefficient: 0.01, aggregate: Aggregate::default() }
    }
}

/// A reward for high entropy, as a loss. Returns the loss, writes ∂loss/∂entropy into `grad`.
///
/// ```text
/// loss = −c · Agg_t H_t        ∂loss/∂H_t = −c W_t
/// ```
///
/// [`logits_gradient`](crate::policy::logits_gradient) propagates `grad` to the logits.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if c is not finite; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** verl 0.9.1 (`entropy_coeff`, same aggregation as the policy loss); TRL 1.16 always takes the token
/// mean.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let mut grad = [9.0; 3];
/// let config = EntropyBonusConfig { coefficient: 0.5, ..Default::default() };
/// assert_eq!(entropy_bonus(&batch, &[1.0, f64::NAN, 3.0], &config, &mut grad)?, -1.0);
/// assert_eq!(grad, [-0.25, 0.0, -0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn entropy_bonus<R: Real>(
    batch: &Batch<'_>,
    entropy: &[R],
    config: &EntropyBonusConfig<'_>,
    grad: &mut [R],
) -> Result<f64> {
    check_len("entropy", entropy, batch.tokens())?;
    check_len("grad", grad, batch.tokens())?;
    check_finite::<R>("coefficient", config.coefficient)?;
    let mean = aggregate(batch, entropy, &config.aggregate, grad)?;
    let coefficient = R::narrow(config.coefficient);
    for (grad, &keep) in grad.iter_mut().zip(batch.mask().as_slice()) {
        // −c · 0 would leave −0 in dropped slots
        if keep {
            *grad = -coefficient * *grad;
        }
    }
    Ok(-config.coefficient * mean)
}
