use super::{
    aggregate::Plan,
    covariance::{walk, wanted, Center},
    Aggregate, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_not_negative, check_unit, Result},
    layout::Batch,
    math::exp,
    real::Real,
    statistics::Divisor,
};

/// How [`kl_cov`] selects and penalises tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct KlCovConfig<'a> {
    /// Share of the kept tokens to penalise, at least one; in `[0, 1]`, default 2e-4.
    pub ratio: f64,
    /// The coefficient κ of their absolute log-ratio; not negative, default 0.1 (verl's config; its docs say 1).
    pub kl_coef: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
}

impl Default for KlCovConfig<'_> {
    fn default() -> Self {
        Self { ratio: 2e-4, kl_coef: 0.1, aggregate: Aggregate::default(), divisor: Divisor::Count }
    }
}

/// The surrogate with a penalty on the change of the tokens with the highest covariance of advantage and
/// log-probability.
///
/// ```text
/// d_t = log π_t − log π_old,t        cov_t = (A_t − Ā)(log π_t − mean log π)
/// L_t = −ρ_t A_t + κ |d_t| [t among the max(⌊ratio · N⌋, 1) largest cov]
/// ∂loss/∂log π_t = W_t (−ρ_t A_t + κ sign d_t [chosen])
/// ```
///
/// Among equal covariances, earlier tokens come first. `clip_fraction` is the share of chosen tokens; `kl` is the mean
/// of `|d|`, absolute.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read, never chosen, and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if `ratio` is outside `[0, 1]` or κ negative; the errors of
/// [`aggregate`](super::aggregate).
///
/// **Reference.** Cui et al. 2025, arXiv:2505.22617, §4.3; verl 0.9.1 `kl_cov`. Log-ratios are not bounded.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-0.5, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, 3.0]);
/// let mut grad = [9.0; 3];
/// let result = kl_cov(&batch, input, &KlCovConfig::default(), &mut grad)?;
/// assert_eq!((result.loss, result.clip_fraction), (-2.0, 0.5));
/// assert_eq!(grad, [-0.5, 0.0, -1.5]);      // nothing has moved yet, so nothing is punished
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_cov<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &KlCovConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    check_unit("ratio", config.ratio)?;
    check_not_negative::<R>("kl_coef", config.kl_coef)?;
    let plan = config.aggregate.plan(batch)?;
    let center = Center::of(batch, &input, Divisor::Count);
    let keep = batch.mask().as_slice();
    let wanted = wanted(config.ratio, batch.kept()).min(batch.kept());
    let threshold = nth_largest(wanted, || {
        (0..batch.tokens()).filter(|&slot| keep[slot]).map(|slot| center.covariance(&input, slot))
    });
    let above = (0..batch.tokens()).filter(|&slot| keep[slot] && center.covariance(&input, slot) > threshold).count();
    let chosen = Chosen { center, threshold, ties: wanted.saturating_sub(above) };
    Ok(penalised(batch, &input, config, &plan, chosen, grad))
}

/// Which tokens are penalised.
pub(crate) struct Chosen {
    pub(crate) center: Center,
    /// Those with a covariance above this,
    pub(crate) threshold: f64,
    /// and so many of those at it: the earlier ones.
    pub(crate) ties: usize,
}

/// [`kl_cov`] with tokens that were chosen over a larger set.
pub(crate) fn kl_cov_of<R: Real>(
    batch: &Batch<'_>,
    input: &PolicyLossInput<'_, R>,
    config: &KlCovConfig<'_>,
    chosen: Chosen,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    check_unit("ratio", config.ratio)?;
    check_not_negative::<R>("kl_coef", config.kl_coef)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(penalised(batch, input, config, &plan, chosen, grad))
}

fn penalised<R: Real>(
    batch: &Batch<'_>,
    input: &PolicyLossInput<'_, R>,
    config: &KlCovConfig<'_>,
    plan: &Plan<'_>,
    chosen: Chosen,
    grad: &mut [R],
) -> PolicyLoss {
    let Chosen { center, threshold, mut ties } = chosen;
    let kappa = R::narrow(config.kl_coef);
    walk(batch, input, plan, config.divisor, grad, |slot, d, advantage| {
        let cov = center.covariance(input, slot);
        let chosen = cov > threshold || (cov == threshold && ties > 0);
        if cov == threshold {
            ties = ties.saturating_sub(1);
        }
        let term = -advantage * exp(d);
        let sign = if d > R::zero() { kappa } else { -kappa };
        let sign = if d == R::zero() { R::zero() } else { sign };
        if chosen {
            (term + kappa * d.abs(), term + sign, true, d.abs())
        } else {
            (term, term, false, d.abs())
        }
    })
}

/// The `rank`-th largest number, by bisection over the bit patterns; −inf if `rank` is 0 or there are fewer numbers.
/// NaN is ordered below all numbers.
fn nth_largest<I: Iterator<Item = f64>>(rank: usize, numbers: impl Fn() -> I) -> f64 {
    // maps floats to integers in the same order
    let ordered = |x: f64| {
        let bits = x.to_bits();
        if x.is_nan() {
            0
        } else if bits >> 63 == 1 {
            !bits
        } else {
            bits | 1 << 63
        }
    };
    let reaches = |bound: u64| numbers().filter(|&x| ordered(x) >= bound).count() >= rank;
    if rank == 0 || !reaches(1) {
        return f64::NEG_INFINITY;
    }
    let mut found = 0_u64;
    for bit in (0..64).rev() {
        if reaches(found | 1 << bit) {
            found |= 1 << bit;
        }
    }
    f64::from_bits(if found >> 63 == 1 { found & !(1 << 63) } else { !found })
}
