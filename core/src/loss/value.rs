use super::{aggregate::Plan, Aggregate};
use crate::{
    error::{check_len, check_not_negative, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::Divisor,
};

/// What [`value_loss`] reads, all state-aligned.
#[derive(Clone, Copy, Debug)]
pub struct ValueLossInput<'a, R> {
    /// The critic's new values; the gradient is taken with respect to these.
    pub predictions: &'a [R],
    /// Its values when the batch was collected; constants.
    pub values: &'a [R],
    /// The targets of the values; constants.
    pub returns: &'a [R],
}

/// The factor of the squared error.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ValueFactor {
    /// ½: verl 0.9.1, OpenRLHF 0.11, TRL 1.16.
    #[default]
    Half,
    /// 1: slime (2026-08).
    Whole,
}

/// How [`value_loss`] clips and aggregates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ValueConfig<'a> {
    /// Predictions are held within ±this of the old values; default 0.5 (TRL 0.2), `None` for none.
    pub clip: Option<f64>,
    /// Default ½.
    pub factor: ValueFactor,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the clip fraction's mean; default the exact count.
    pub divisor: Divisor,
}

impl Default for ValueConfig<'_> {
    fn default() -> Self {
        Self { clip: Some(0.5), factor: ValueFactor::Half, aggregate: Aggregate::default(), divisor: Divisor::Count }
    }
}

/// A value loss and its metric.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// Share of kept tokens whose clipped error is the larger one.
    pub clip_fraction: f64,
}

/// The critic's squared error, the larger of clipped and unclipped. Returns the loss, writes ∂loss/∂predictions into
/// `grad`.
///
/// ```text
/// v̂ = clip(v, V − ε, V + ε)        loss = ½ Agg_t max((v − G)², (v̂ − G)²)
/// ∂loss/∂v_t = W_t (v − G)  where (v − G)² ≥ (v̂ − G)², else 0
/// ```
///
/// **Alignment.** State-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if the clip is negative or not finite; the errors of
/// [`aggregate`](super::aggregate).
///
/// **Reference.** verl 0.9.1 `compute_value_loss`, OpenRLHF 0.11 `ValueLoss`, TRL 1.16 PPO (which multiplies by 0.1
/// afterwards).
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let mut grad = [9.0; 3];
/// let result = value_loss(
///     &batch,
///     ValueLossInput {
///         predictions: &[1.0, f64::NAN, 2.0],
///         values: &[1.0, f64::NAN, 1.0],
///         returns: &[0.0, f64::NAN, 2.0],
///     },
///     &ValueConfig::default(),
///     &mut grad,
/// )?;
/// assert_eq!((result.loss, result.clip_fraction), (0.3125, 0.5));     // ½ · (1² + 0.5²) / 2
/// assert_eq!(grad, [0.5, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn value_loss<R: Real>(
    batch: &Batch<'_>,
    input: ValueLossInput<'_, R>,
    config: &ValueConfig<'_>,
    grad: &mut [R],
) -> Result<ValueLoss> {
    check_len("predictions", input.predictions, batch.tokens())?;
    check_len("values", input.values, batch.tokens())?;
    check_len("returns", input.returns, batch.tokens())?;
    check_len("grad", grad, batch.tokens())?;
    let clip = config.clip.unwrap_or(f64::INFINITY);
    if config.clip.is_some() {
        check_not_negative::<R>("clip", clip)?;
    }
    let plan = config.aggregate.plan(batch)?;
    let factor = if config.factor == ValueFactor::Half { 0.5 } else { 1.0 };
    let (loss, clipped) = evaluate(batch, input, R::narrow(clip), factor, &plan, grad);
    let kept = batch.kept() as f64;
    Ok(ValueLoss { loss, clip_fraction: if kept == 0.0 { 0.0 } else { clipped / config.divisor.of(kept) } })
}

#[multiversion]
fn evaluate<R: Real>(
    batch: &Batch<'_>,
    input: ValueLossInput<'_, R>,
    clip: R,
    factor: f64,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> (f64, f64) {
    let (mut loss, mut clipped) = (Sum::default(), Sum::default());
    for (row, weight) in plan.rows(batch) {
        let slope = R::narrow(2.0 * factor * weight);
        let inputs = [input.predictions, input.values, input.returns];
        let [sum, held] = fold_row(&row, inputs, [&mut *grad], |[prediction, value, target]| {
            let (low, high) = (value - clip, value + clip);
            let inside = if prediction < low { low } else { prediction };
            let inside = if inside > high { high } else { inside };
            let (error, clipped_error) = (prediction - target, inside - target);
            // comparisons with NaN are false: a NaN old value must be propagated by hand where it bounds the clip
            let error = if value.is_nan() & (clip < R::infinity()) { value } else { error };
            let (plain, clipped) = (error * error, clipped_error * clipped_error);
            let held = clipped > plain;
            let gradient = if held { R::zero() } else { error * slope };
            ([gradient], [if held { clipped.widen() } else { plain.widen() }, if held { 1.0 } else { 0.0 }])
        });
        loss.add(factor * weight * sum);
        clipped.add(held);
    }
    (loss.value(), clipped.value())
}
