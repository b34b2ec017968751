use crate::{
    error::{check_len, Result},
    layout::Batch,
    math::{clamp, exp_minus_one, exp_remainder},
    parallel::{in_order, Part, Work},
    real::Real,
    reduce::map_row,
    simd::multiversion,
};

/// The function of `d = log π − log π_ref` of one sampled token.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum KlEstimator {
    /// `d`: unbiased, can be negative. verl names `kl`, `k1`.
    #[default]
    K1,
    /// `|d|`. verl name `abs`.
    Abs,
    /// `d²/2`: biased, small variance. verl names `mse`, `k2`.
    K2,
    /// `e^{−d} − 1 + d`: unbiased, never negative. verl names `low_var_kl`, `k3`.
    K3,
}

/// The gradient that belongs to the value.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum KlGradient {
    /// The derivative of the value.
    #[default]
    Own,
    /// The derivative of `d²/2`, which is `d`, whatever the estimator: an unbiased gradient of the KL. verl's names
    /// with `+`.
    StraightThrough,
}

/// Bounds on the estimates. Strictly beyond a bound the gradient is 0; exactly at the bound it is unchanged.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum KlBounds {
    /// No bounds. The papers; TRL 1.16.
    #[default]
    Unbounded,
    /// K3 only: `d` is clamped to ±20, then the value to at most 10. verl 0.9.1.
    K3Only,
    /// Every estimator's value is clamped to ±10; K3 takes `d` no lower than −10. OpenRLHF 0.11.
    Every,
}

/// What the KL estimators read.
#[derive(Clone, Copy, Debug)]
pub struct KlInput<'a, R> {
    /// log π of each token.
    pub log_probs: &'a [R],
    /// log π_ref of each token.
    pub ref_log_probs: &'a [R],
}

impl<R> KlInput<'_, R> {
    /// The input of a part of the batch.
    fn part(&self, part: &Part<'_>) -> Self {
        Self { log_probs: part.of(self.log_probs), ref_log_probs: part.of(self.ref_log_probs) }
    }
}

/// Which estimate, with which gradient and bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct KlConfig {
    /// Default [`KlEstimator::K1`].
    pub estimator: KlEstimator,
    /// Default [`KlGradient::Own`].
    pub gradient: KlGradient,
    /// Default [`KlBounds::Unbounded`].
    pub bounds: KlBounds,
}

#[cfg(feature = "serde")]
crate::spelling::over! { KlConfig { estimator: KlEstimator, gradient: KlGradient, bounds: KlBounds } }

/// Per-token estimate of how far the policy has moved from the reference.
///
/// ```text
/// d = log π − log π_ref      K1: d      Abs: |d|      K2: d²/2      K3: e^{−d} − 1 + d
/// ```
///
/// In expectation over tokens drawn from π, K1 and K3 are the KL divergence of the next-token distributions.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** Schulman 2020, "Approximating KL divergence". Bounds: [`KlBounds`]. [`KlGradient`] does not change
/// the value.
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = KlInput { log_probs: &[-1.0, f64::NAN, -2.0], ref_log_probs: &[-1.5, f64::NAN, -1.0] };
/// let mut out = [9.0; 3];
/// kl_estimate(&batch, input, &KlConfig::default(), &mut out)?;
/// assert_eq!(out, [0.5, 0.0, -1.0]);
/// kl_estimate(&batch, input, &KlConfig { estimator: KlEstimator::K2, ..Default::default() }, &mut out)?;
/// assert_eq!(out, [0.125, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_estimate<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, config: &KlConfig, out: &mut [R]) -> Result<()> {
    check(batch, input, out)?;
    in_order(batch, Work::ONE, [out], |part, [out], _| values(&part.batch, input.part(part), config, out), |()| ());
    Ok(())
}

/// The derivative of each token's KL estimate with respect to its log-probability.
///
/// ```text
/// K1: 1      Abs: sign d      K2: d      K3: 1 − e^{−d}      StraightThrough: d
/// ```
///
/// 0 strictly beyond a bound of [`KlBounds`], except for `StraightThrough`, which ignores the bounds. sign 0 = 0.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** Equal to the autograd of verl 0.9.1 `kl_penalty`. `k1` as a loss has gradient 1 whatever the
/// reference: its effect is zero on average, pure noise; `StraightThrough` is unbiased.
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let input = KlInput { log_probs: &[-1.0, f64::NAN], ref_log_probs: &[-1.5, f64::NAN] };
/// let config = KlConfig { estimator: KlEstimator::K3, gradient: KlGradient::StraightThrough, ..Default::default() };
/// let mut out = [9.0; 2];
/// kl_gradient(&batch, input, &config, &mut out)?;
/// assert_eq!(out, [0.5, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_gradient<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, config: &KlConfig, out: &mut [R]) -> Result<()> {
    check(batch, input, out)?;
    in_order(batch, Work::ONE, [out], |part, [out], _| gradients(&part.batch, input.part(part), config, out), |()| ());
    Ok(())
}

fn check<R>(batch: &Batch<'_>, input: KlInput<'_, R>, out: &[R]) -> Result<()> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    check_len("out", out, batch.tokens())
}

/// An estimator with its bounds as numbers; ±inf if there is none.
#[derive(Clone, Copy)]
pub(crate) struct Kl<R> {
    estimator: KlEstimator,
    /// K3's exponent `u = −d` is clamped to this range: verl and OpenRLHF bound it in different directions.
    low: R,
    high: R,
    /// The value is clamped to ± this number.
    most: R,
}

/// Evaluates an expression with a [`Kl`] bound to the given name. The expression is compiled once per estimator, so
/// that no loop in it branches on the estimator.
macro_rules! by_estimator {
    ($config:expr, |$kl:ident| $body:expr) => {
        match $config.estimator {
            $crate::divergence::KlEstimator::K1 => {
                let $kl = $crate::divergence::Kl::new($config, $crate::divergence::KlEstimator::K1);
                $body
            }
            $crate::divergence::KlEstimator::Abs => {
                let $kl = $crate::divergence::Kl::new($config, $crate::divergence::KlEstimator::Abs);
                $body
            }
            $crate::divergence::KlEstimator::K2 => {
                let $kl = $crate::divergence::Kl::new($config, $crate::divergence::KlEstimator::K2);
                $body
            }
            $crate::divergence::KlEstimator::K3 => {
                let $kl = $crate::divergence::Kl::new($config, $crate::divergence::KlEstimator::K3);
                $body
            }
        }
    };
}
pub(crate) use by_estimator;

impl<R: Real> Kl<R> {
    #[inline(always)]
    pub(crate) fn new(config: &KlConfig, estimator: KlEstimator) -> Self {
        let (low, high, most) = match (config.bounds, estimator) {
            (KlBounds::K3Only, KlEstimator::K3) => (-20.0, 20.0, 10.0),
            (KlBounds::Every, KlEstimator::K3) => (f64::NEG_INFINITY, 10.0, 10.0),
            (KlBounds::Every, _) => (f64::NEG_INFINITY, f64::INFINITY, 10.0),
            _ => (f64::NEG_INFINITY, f64::INFINITY, f64::INFINITY),
        };
        Self { estimator, low: R::narrow(low), high: R::narrow(high), most: R::narrow(most) }
    }

    #[inline(always)]
    fn unbounded(&self, d: R) -> R {
        match self.estimator {
            KlEstimator::K1 => d,
            KlEstimator::Abs => d.abs(),
            KlEstimator::K2 => d * d * R::narrow(0.5),
            KlEstimator::K3 => exp_remainder(clamp(-d, self.low, self.high)),
        }
    }

    /// The estimate for one token.
    #[inline(always)]
    pub(crate) fn value(&self, d: R) -> R {
        clamp(self.unbounded(d), -self.most, self.most)
    }

    /// The derivative of the estimate.
    #[inline(always)]
    fn gradient(&self, d: R) -> R {
        let gradient = match self.estimator {
            KlEstimator::K1 => R::one(),
            KlEstimator::Abs => {
                let negative = if d < R::zero() { -R::one() } else { R::zero() };
                if d > R::zero() {
                    R::one()
                } else {
                    negative
                }
            }
            KlEstimator::K2 => d,
            // beyond the bounds it is 0, and within them the exponent is −d; subtracted from 0, because −(+0) would be
            // −0 at d = 0
            KlEstimator::K3 => R::zero() - exp_minus_one(clamp(-d, self.low, self.high)),
        };
        let value = self.unbounded(d);
        let beyond = (-d < self.low) | (-d > self.high) | (value > self.most) | (value < -self.most);
        let gradient = if beyond { R::zero() } else { gradient };
        if d.is_nan() {
            d
        } else {
            gradient
        }
    }
}

/// The estimate for one token.
#[inline(always)]
pub(crate) fn value_of<R: Real>(config: &KlConfig, d: R) -> R {
    Kl::new(config, config.estimator).value(d)
}

#[inline(always)]
pub(crate) fn gradient_of<R: Real>(config: &KlConfig, d: R) -> R {
    match config.gradient {
        KlGradient::StraightThrough => d,
        KlGradient::Own => Kl::new(config, config.estimator).gradient(d),
    }
}

/// Writes `of(d)` at every kept token.
#[inline(always)]
fn each<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, out: &mut [R], of: impl Fn(R) -> R) {
    for row in batch.token_rows() {
        map_row(&row, [input.log_probs, input.ref_log_probs], out, |[p, q]| of(p - q));
    }
}

#[multiversion(avx512)]
fn values<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, config: &KlConfig, out: &mut [R]) {
    by_estimator!(config, |kl| each(batch, input, out, |d| kl.value(d)));
}

#[multiversion]
fn gradients<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, config: &KlConfig, out: &mut [R]) {
    match config.gradient {
        KlGradient::StraightThrough => each(batch, input, out, |d| d),
        KlGradient::Own => by_estimator!(config, |kl| each(batch, input, out, |d| kl.gradient(d))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    fn slope<R: Real>(d: R) -> R {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let config = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
        let mut out = [R::one()];
        kl_gradient(&batch, KlInput { log_probs: &[d], ref_log_probs: &[R::zero()] }, &config, &mut out).unwrap();
        out[0]
    }

    #[test]
    fn the_gradient_of_k3_is_accurate_near_zero() {
        for power in 1..=15 {
            for sign in [-1.0, 1.0] {
                let d = sign * libm::pow(10.0, -f64::from(power));
                approx::assert_relative_eq!(slope(d), -libm::expm1(-d), max_relative = 4.0 * f64::EPSILON);
                let (single, exact) = (d as f32, -libm::expm1(-f64::from(d as f32)));
                approx::assert_relative_eq!(f64::from(slope(single)), exact, max_relative = 4.0 * 1.2e-7);
            }
        }
        assert_eq!(slope(0.0_f32).to_bits(), 0);
        assert_eq!((slope(f64::INFINITY), slope(f64::NEG_INFINITY)), (1.0, f64::NEG_INFINITY));
    }
}
