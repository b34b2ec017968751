use super::{aggregate::Plan, Aggregate, PolicyLossInput};
use crate::{
    error::{check_positive, Result},
    layout::Batch,
    math::{clamp, exp, ln},
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
};

/// The shape of the weight of [`vespo`]: `φ(w) = w^k e^{λ (1 − w)}`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct VespoConfig<'a> {
    /// k where the advantage is not negative; positive, default 2.
    pub k_positive: f64,
    /// λ where the advantage is not negative; positive, default 3.
    pub lambda_positive: f64,
    /// k where the advantage is negative; positive, default 3.
    pub k_negative: f64,
    /// λ where the advantage is negative; positive, default 2.
    pub lambda_negative: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for VespoConfig<'_> {
    fn default() -> Self {
        Self {
            k_positive: 2.0,
            lambda_positive: 3.0,
            k_negative: 3.0,
            lambda_negative: 2.0,
            aggregate: Aggregate::default(),
        }
    }
}

/// What [`vespo`] returns.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VespoLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// Mean over the sequences with kept tokens of the weight of their first kept token; 0 if there are none.
    pub phi_mean: f64,
}

/// A policy gradient weighted by a smooth function of the whole sequence's ratio, which is 1 at ratio 1 and small on
/// both sides.
///
/// ```text
/// w_i = exp(clip(Σ_t clip(log π_t − log π_old,t, ±20), ln 1e-8, 20))        φ = w^k e^{λ (1 − w)}, a constant
/// loss = −Agg_t φ A_t log π_t        ∂loss/∂log π_t = −W_t φ A_t
/// ```
///
/// Rollout weights are multiplied into the ratio (`Σ_t ln ω_t`, each between ln 1e-8 and 20) and are not applied again.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a k or λ is not positive; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** TRL 1.16 loss type `vespo`; `phi_mean` is its `vespo/phi_seq_mean` without rows that have no kept
/// token, which count 1 there.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-0.5, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, 1.0]);
/// let mut grad = [9.0; 3];
/// assert_eq!(vespo(&batch, input, &VespoConfig::default(), &mut grad)?.phi_mean, 1.0);
/// assert_eq!(grad, [-0.5, 0.0, -0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn vespo<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &VespoConfig<'_>,
    grad: &mut [R],
) -> Result<VespoLoss> {
    input.check(batch, grad)?;
    check_positive::<R>("k_positive", config.k_positive)?;
    check_positive::<R>("lambda_positive", config.lambda_positive)?;
    check_positive::<R>("k_negative", config.k_negative)?;
    check_positive::<R>("lambda_negative", config.lambda_negative)?;
    let plan = config.aggregate.plan(batch)?;
    let (loss, phis, sequences) = evaluate(batch, input, config, &plan, grad);
    Ok(VespoLoss { loss, phi_mean: if sequences == 0.0 { 0.0 } else { phis / sequences } })
}

/// φ at log w; 0 if it is not finite.
fn phi(log_w: f64, k: f64, lambda: f64) -> f64 {
    let phi = exp(lambda + k * log_w - lambda * exp(log_w));
    if phi.is_finite() {
        phi
    } else {
        0.0
    }
}

#[multiversion]
fn evaluate<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &VespoConfig<'_>,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> (f64, f64, f64) {
    let least = ln(1e-8);
    let (mut loss, mut phis, mut sequences) = (Sum::default(), Sum::default(), 0.0);
    for (row, weight) in plan.rows(batch) {
        let [mut log_w] = fold_row(&row, [input.log_probs, input.old_log_probs], [], |[new, old]| {
            ([], [clamp((new - old).widen(), -20.0, 20.0)])
        });
        if let Some(weights) = input.weights {
            let [logs] = fold_row(&row, [weights], [], |[omega]| ([], [clamp(ln(omega.widen()), least, 20.0)]));
            log_w += logs;
        }
        let log_w = clamp(log_w, least, 20.0);
        // a NaN log-ratio makes both NaN, not 0
        let of = |k, lambda| if log_w.is_nan() { log_w } else { phi(log_w, k, lambda) };
        let (positive, negative) =
            (of(config.k_positive, config.lambda_positive), of(config.k_negative, config.lambda_negative));
        let (up, down, w) = (R::narrow(positive), R::narrow(negative), R::narrow(weight));
        let [sum] = fold_row(&row, [input.log_probs, input.advantages], [&mut *grad], |[new, advantage]| {
            let slope = -(if advantage < R::zero() { down } else { up }) * advantage;
            ([slope * w], [(slope * new).widen()])
        });
        loss.add(weight * sum);
        if let Some(first) = row.keep.iter().position(|&keep| keep) {
            phis.add(if row.of(input.advantages)[first] < R::zero() { negative } else { positive });
            sequences += 1.0;
        }
    }
    (loss.value(), phis.value(), sequences)
}
