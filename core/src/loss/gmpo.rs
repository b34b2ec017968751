use super::{Counts, PolicyLoss, PolicyLossInput};
use crate::{
    error::{check_config, check_not_negative, Error, Result},
    layout::Batch,
    math::{exp, ln},
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::Divisor,
};

/// How [`gmpo`] clips.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GmpoConfig {
    /// Log-ratios are clipped at `−clip_low`, in log space; not negative, default 0.4.
    pub clip_low: f64,
    /// Log-ratios are clipped at `clip_high`, in log space; not negative, default 0.4.
    pub clip_high: f64,
    /// Which sequences the mean counts; with local counts all rows, including empty ones.
    pub counts: Counts,
    /// Divisor of means: `n_i` (TRL's experimental GMPO), or verl's `n_i + 1e-8`; also for the metrics.
    pub divisor: Divisor,
}

impl Default for GmpoConfig {
    fn default() -> Self {
        Self { clip_low: 0.4, clip_high: 0.4, counts: Counts::Local, divisor: Divisor::Count }
    }
}

/// The geometric mean of a sequence's clipped ratios, times its mean advantage: one outlier cannot dominate a sequence.
///
/// ```text
/// d_t = log π_t − log π_old,t        d*_t = d_t, held at ε⁺ if A_t > 0, at −ε⁻ if A_t < 0, and 0 if A_t = 0
/// R_i = exp(Σ_t d*_t / n_i)        A_i = Σ_t A_t / n_i        loss = −Σ_i A_i R_i / B
/// ∂loss/∂log π_t = −A_i R_i / (n_i B) [d_t not held]
/// ```
///
/// The widths are in log space: 0.2 means ratios between e^{−0.2} and e^{0.2}. `clip_fraction` is the share of tokens
/// with `A > 0` whose log-ratio is outside the range, `clip_fraction_lower` that with `A < 0`. Rollout weights enter as
/// their geometric mean.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0. A sequence without kept tokens adds 0 but counts in `B`.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if a width is negative or a global
/// count is 0; [`Error::EmptyMask`] without kept tokens and with local counts.
///
/// **Reference.** Zhao et al. 2025 (GMPO), arXiv:2507.20673, eq. 4. verl 0.9.1 `geo_mean`, which ignores its
/// aggregation mode.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-0.5, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, 2.0]);
/// let mut grad = [9.0; 3];
/// assert_eq!(gmpo(&batch, input, &GmpoConfig::default(), &mut grad)?.loss, -1.5);
/// assert_eq!(grad, [-0.75, 0.0, -0.75]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn gmpo<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &GmpoConfig,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    check_not_negative::<R>("clip_low", config.clip_low)?;
    check_not_negative::<R>("clip_high", config.clip_high)?;
    let share = match config.counts {
        Counts::Local if batch.kept() == 0 => return Err(Error::EmptyMask),
        Counts::Local => 1.0 / batch.sequences() as f64,
        Counts::Global(counts) => {
            check_config("sequences", "at least 1", counts.sequences as f64, counts.sequences > 0)?;
            check_config("ranks", "at least 1", counts.ranks as f64, counts.ranks > 0)?;
            counts.ranks as f64 / counts.sequences as f64
        }
    };
    let [loss, high, low, kl] = evaluate(batch, input, config, share, grad);
    let mean = |sum: f64| if batch.kept() == 0 { 0.0 } else { sum / config.divisor.of(batch.kept() as f64) };
    Ok(PolicyLoss { loss, clip_fraction: mean(high), clip_fraction_lower: mean(low), kl: mean(kl) })
}

#[multiversion]
fn evaluate<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &GmpoConfig,
    share: f64,
    grad: &mut [R],
) -> [f64; 4] {
    let (low, high) = (R::narrow(-config.clip_low), R::narrow(config.clip_high));
    let mut totals = [Sum::default(); 4];
    for row in batch.token_rows() {
        let kept = row.kept();
        let n = config.divisor.of(kept.max(1) as f64);
        let inputs = [input.log_probs, input.old_log_probs, input.advantages];
        // the gradient is 1 where the log-ratio is not clipped, until the factor of the sequence is known
        let [held, advantages, log_ratios, above, below] =
            fold_row(&row, inputs, [&mut *grad], |[new, old, advantage]| {
                let d = new - old;
                let (positive, negative) = (advantage > R::zero(), advantage < R::zero());
                let stopped = (positive & (d > high)) | (negative & (d < low));
                let value = if positive {
                    if d > high {
                        high
                    } else {
                        d
                    }
                } else {
                    R::zero()
                };
                let value = if negative {
                    if d < low {
                        low
                    } else {
                        d
                    }
                } else {
                    value
                };
                // NaN must be propagated by hand: a NaN advantage has no sign, and an advantage of 0 ignores the
                // log-ratio
                let value = if advantage.is_nan() | d.is_nan() { advantage + d } else { value };
                let free = (positive | negative) & !stopped;
                let outside = (d > high) | (d < low);
                let count = |yes: bool| if yes { 1.0 } else { 0.0 };
                (
                    [if free { R::one() } else { R::zero() }],
                    [value.widen(), advantage.widen(), d.widen(), count(outside & positive), count(outside & negative)],
                )
            });
        let weight = match input.weights {
            None => 1.0,
            Some(weights) => {
                let [logs] = fold_row(&row, [weights], [], |[omega]| ([], [ln(omega.widen() + 1e-10)]));
                exp(logs / n)
            }
        };
        let loss = if kept == 0 { 0.0 } else { -(advantages / n) * exp(held / n) * weight * share };
        let slope = R::narrow(loss / n);
        for (grad, &keep) in row.of_mut(grad).iter_mut().zip(row.keep) {
            // a NaN loss has a NaN gradient
            *grad = if keep & ((*grad != R::zero()) | slope.is_nan()) { slope } else { R::zero() };
        }
        for (total, part) in totals.iter_mut().zip([loss, above, below, -log_ratios]) {
            total.add(part);
        }
    }
    Sum::values(&totals)
}
