use super::{ppo_clip, reinforce, PolicyLoss, PolicyLossInput, PpoConfig, ReinforceConfig};
use crate::{
    error::{check_len, Error, Result},
    layout::{Batch, Mask},
    real::Real,
    rollout::{
        rollout_mismatch, rollout_rejection, rollout_rejection_metrics, rollout_weight_metrics, rollout_weights,
        CriterionMetrics, RejectionConfig, RejectionTotals, RolloutConfig, RolloutInput, RolloutMismatch,
        RolloutWeightMetrics,
    },
    statistics::{Divisor, MeanConfig},
};

#[cfg(feature = "serde")]
use crate::spelling::bypass as spelling;

/// The policy loss of [`bypass_loss`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "spelling::GivenForm<'a>", into = "spelling::WrittenForm<'a>"))]
pub enum BypassForm<'a> {
    /// The clipped surrogate. Its ratio already is the correction, so the weights only enter the metrics.
    PpoClip(PpoConfig<'a>),
    /// The plain policy gradient, times the weights.
    Reinforce(ReinforceConfig<'a>),
}

impl Default for BypassForm<'_> {
    fn default() -> Self {
        Self::PpoClip(PpoConfig::default())
    }
}

/// How [`bypass_loss`] corrects for the sampler.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "spelling::GivenConfig<'a>", into = "spelling::WrittenConfig<'a>"))]
pub struct BypassConfig<'a> {
    /// The importance weights; default none.
    pub weights: Option<RolloutConfig>,
    /// Which tokens and sequences are rejected; default none.
    pub rejection: RejectionConfig<'a>,
    /// Default [`BypassForm::PpoClip`].
    pub form: BypassForm<'a>,
    /// Divisor of the mismatch means; default the exact count.
    pub divisor: Divisor,
}

/// What [`bypass_loss`] writes.
#[derive(Debug)]
pub struct BypassOutput<'a, R> {
    /// The importance weight of each token; 1 without any, 0 in dropped slots.
    pub weights: &'a mut [R],
    /// The tokens left after rejection.
    pub keep: &'a mut [bool],
    /// One per criterion of the rejection.
    pub per_criterion: &'a mut [CriterionMetrics],
    /// ∂loss/∂log_probs.
    pub grad: &'a mut [R],
}

/// What [`bypass_loss`] returns.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BypassLoss {
    /// The policy loss and its metrics, over the tokens left after rejection; all 0 if none are left.
    pub policy: PolicyLoss,
    /// How far the policy is from the sampler's, over all kept tokens.
    pub mismatch: RolloutMismatch,
    /// `Some` if weights are configured.
    pub weights: Option<RolloutWeightMetrics>,
    /// `Some` if there are rejection criteria.
    pub rejection: Option<RejectionTotals>,
}

/// A policy loss that uses the sampler's log-probabilities as the old ones and corrects for both at once.
///
/// ```text
/// δ_t = log π_t − log π_old,t, a constant        ω = rollout_weights(δ)        m' = rollout_rejection(δ)
/// PpoClip: ppo_clip over m'                      Reinforce: −Agg_t ω_t A_t log π_t over m'
/// ```
///
/// `old_log_probs` are the sampler's. With local counts a mean is over the tokens left after rejection, with
/// [`Counts::Global`](super::Counts) over those the caller counted.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get weight 0, gradient 0 and `false`; rejected tokens get gradient 0.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch` or `per_criterion` the criteria; [`Error::EmptyMask`]
/// without kept tokens; the errors of [`rollout_weights`], [`rollout_rejection`] and of the policy loss. `weights` of
/// the input must be absent ([`Error::Length`] otherwise): they are computed here.
///
/// **Reference.** verl 0.9.1 `bypass_mode`, with `DualClip::NegativeOnly(3.0)` and [`Divisor::CountPlusEpsilon`]; it
/// gives NaN if every token is rejected.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = PolicyLossInput::new(
///     &[-1.0, f64::NAN, -1.0],
///     &[-1.0, f64::NAN, -4.0],      // the sampler found the last token far less likely
///     &[1.0, f64::NAN, 1.0],
/// );
/// let criteria = [Criterion { option: RejectionOption::TokenK2, upper: 0.5, ..Default::default() }];
/// let rejection = RejectionConfig { criteria: &criteria, ..Default::default() };
/// let config = BypassConfig { rejection, ..Default::default() };
/// let (mut weights, mut keep, mut grad) = ([9.0; 3], [true; 3], [9.0; 3]);
/// let mut per_criterion = [CriterionMetrics::default()];
/// let output =
///     BypassOutput { weights: &mut weights, keep: &mut keep, per_criterion: &mut per_criterion, grad: &mut grad };
/// let result = bypass_loss(&batch, input, &config, output)?;
/// assert_eq!((result.policy.loss, grad), (-1.0, [-1.0, 0.0, 0.0]));
/// assert_eq!((weights, keep), ([1.0, 0.0, 1.0], [true, false, false]));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn bypass_loss<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &BypassConfig<'_>,
    output: BypassOutput<'_, R>,
) -> Result<BypassLoss> {
    let BypassOutput { weights, keep, per_criterion, grad } = output;
    input.check(batch, grad)?;
    if let Some(weights) = input.weights {
        return Err(Error::Length { what: "weights", expected: 0, got: weights.len() });
    }
    check_len("weights", weights, batch.tokens())?;
    check_len("keep", keep, batch.tokens())?;
    check_len("per_criterion", per_criterion, config.rejection.criteria.len())?;
    let pair = RolloutInput { old_log_probs: input.log_probs, rollout_log_probs: input.old_log_probs };
    config.rejection.check()?;
    config.weights.map_or(Ok(()), |weights| weights.check::<R>())?;
    let (aggregate, checked) = match &config.form {
        BypassForm::PpoClip(form) => (&form.aggregate, form.check::<R>()),
        BypassForm::Reinforce(form) => (&form.aggregate, Ok(())),
    };
    checked?;
    aggregate.plan(batch)?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }

    // nothing can fail from here on
    let weight_metrics = match &config.weights {
        Some(rollout) => {
            rollout_weights(batch, pair, rollout, weights)?;
            Some(rollout_weight_metrics(batch, pair, rollout)?)
        }
        None => {
            for (weight, &keep) in weights.iter_mut().zip(batch.mask().as_slice()) {
                *weight = if keep { R::one() } else { R::zero() };
            }
            None
        }
    };
    rollout_rejection(batch, pair, &config.rejection, keep)?;
    let rejection = match config.rejection.criteria {
        [] => None,
        _ => Some(rollout_rejection_metrics(batch, pair, &config.rejection, per_criterion)?),
    };
    let mismatch = rollout_mismatch(batch, pair, &MeanConfig { divisor: config.divisor })?;
    let left = Batch::new(batch.layout(), Mask::new(keep))?;
    let policy = if left.kept() == 0 {
        grad.fill(R::zero());
        PolicyLoss::default()
    } else {
        match &config.form {
            BypassForm::PpoClip(form) => ppo_clip(&left, input, form, grad)?,
            BypassForm::Reinforce(form) => {
                let input = PolicyLossInput { weights: Some(weights), ..input };
                reinforce(&left, input, form, grad)?
            }
        }
    };
    Ok(BypassLoss { policy, mismatch, weights: weight_metrics, rejection })
}
