use super::{aggregate::Plan, Aggregate};
use crate::{
    divergence::{kl_slope, kl_value, KlBounds, KlConfig, KlEstimator, KlGradient, KlInput},
    error::{check_finite, check_len, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
};

/// The estimate of [`kl_loss`] and its coefficient.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct KlLossConfig<'a> {
    /// Default K3, its own gradient, unbounded.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_kl"))]
    pub kl: KlConfig,
    /// The coefficient β; default 1e-3 (verl).
    pub coefficient: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

#[cfg(feature = "serde")]
crate::spelling::over_default! { read_kl: KlLossConfig.kl as KlConfig }

impl Default for KlLossConfig<'_> {
    fn default() -> Self {
        let kl = KlConfig { estimator: KlEstimator::K3, gradient: KlGradient::Own, bounds: KlBounds::Unbounded };
        Self { kl, coefficient: 1e-3, aggregate: Aggregate::default() }
    }
}

/// What [`kl_loss`] returns.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KlLoss {
    /// β times the aggregated estimate.
    pub loss: f64,
    /// The aggregated estimate itself. verl logs it as `actor/kl_loss`.
    pub aggregated: f64,
    /// The mean of the estimate over the kept tokens; 0 if there are none.
    pub mean: f64,
}

/// The KL to the reference as a loss of its own. Returns the loss, writes ∂loss/∂log_probs into `grad`.
///
/// ```text
/// loss = β · Agg_t kl(d_t)        ∂loss/∂log π_t = β W_t kl'(d_t)        d = log π − log π_ref
/// ```
///
/// kl and kl' are those of [`kl_estimate`](crate::divergence::kl_estimate) and
/// [`kl_gradient`](crate::divergence::kl_gradient). Add loss and gradient to those of the policy loss: this equals
/// adding the KL to each token's loss before aggregation.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if β is not finite; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** verl 0.9.1 `use_kl_loss`: β 1e-3, `low_var_kl`, the aggregation of the policy loss. TRL 1.16: K3, β
/// 0, inside the token's loss, not weighted by the rollout correction. OpenRLHF 0.11: always the token mean, β from its
/// controller. slime: sequence mean. AReaL's `kdrl` with a reward is K1 to the teacher with β 0.005 and the token mean.
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::*, loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = KlInput { log_probs: &[-1.0, f64::NAN, -2.0], ref_log_probs: &[-1.5, f64::NAN, -1.0] };
/// let kl = KlConfig { estimator: KlEstimator::K2, ..Default::default() };
/// let mut grad = [9.0; 3];
/// let result = kl_loss(&batch, input, &KlLossConfig { kl, coefficient: 0.5, ..Default::default() }, &mut grad)?;
/// assert_eq!((result.loss, result.aggregated, result.mean), (0.15625, 0.3125, 0.3125));
/// assert_eq!(grad, [0.125, 0.0, -0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_loss<R: Real>(
    batch: &Batch<'_>,
    input: KlInput<'_, R>,
    config: &KlLossConfig<'_>,
    grad: &mut [R],
) -> Result<KlLoss> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    check_len("grad", grad, batch.tokens())?;
    check_finite::<R>("coefficient", config.coefficient)?;
    let plan = config.aggregate.plan(batch)?;
    let [aggregated, sum] = walk(batch, input, config, &plan, grad);
    let mean = if batch.kept() == 0 { 0.0 } else { sum / batch.kept() as f64 };
    Ok(KlLoss { loss: config.coefficient * aggregated, aggregated, mean })
}

#[multiversion]
fn walk<R: Real>(
    batch: &Batch<'_>,
    input: KlInput<'_, R>,
    config: &KlLossConfig<'_>,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> [f64; 2] {
    let mut totals = [Sum::default(); 2];
    for (row, weight) in plan.rows(batch) {
        let w = R::narrow(config.coefficient * weight);
        let [sum] = fold_row(&row, [input.log_probs, input.ref_log_probs], [&mut *grad], |[p, q]| {
            ([w * kl_slope(&config.kl, p - q)], [kl_value(&config.kl, p - q).widen()])
        });
        totals[0].add(weight * sum);
        totals[1].add(sum);
    }
    Sum::values(&totals)
}
