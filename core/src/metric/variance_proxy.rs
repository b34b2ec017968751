use crate::{
    error::{check_len, check_not_negative, Error, Result},
    layout::{Batch, Row},
    math::exp,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::Divisor,
};

/// What [`variance_proxy`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct VarianceProxyInput<'a, R> {
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: &'a [R],
    /// `Σ_v π_v²` of the distribution each token was drawn from.
    pub sum_pi_squared: &'a [R],
    /// Advantages.
    pub advantages: &'a [R],
    /// Importance weights, where the loss uses them.
    pub weights: Option<&'a [R]>,
}

impl<'a, R> VarianceProxyInput<'a, R> {
    /// Without weights.
    pub const fn new(old_log_probs: &'a [R], sum_pi_squared: &'a [R], advantages: &'a [R]) -> Self {
        Self { old_log_probs, sum_pi_squared, advantages, weights: None }
    }

    pub(crate) fn check(&self, batch: &Batch<'_>) -> Result<()> {
        check_len("old_log_probs", self.old_log_probs, batch.tokens())?;
        check_len("sum_pi_squared", self.sum_pi_squared, batch.tokens())?;
        check_len("advantages", self.advantages, batch.tokens())?;
        self.weights.map_or(Ok(()), |weights| check_len("weights", weights, batch.tokens()))
    }
}

/// What [`variance_proxy`] needs besides the tokens. There is no default: the norm is specific to the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct VarianceProxyConfig {
    /// ‖g‖, the norm of the whole batch's gradient; not negative.
    pub gradient_norm: f64,
    /// Divisor of means; may be left out when deserialised, with the exact count as default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub divisor: Divisor,
}

/// Proxies of the gradient noise that need no second backward pass.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VarianceProxy {
    /// Squared norm of the batch's gradient.
    pub signal_strength: f64,
    /// Mean over sequences of the squared norm of their own gradients, by proxy.
    pub total_power: f64,
    /// Variance of the mean gradient; 0 for one sequence, never negative.
    pub pure_noise: f64,
    /// Mean over sequences of their squared mean advantage.
    pub expected_a_squared: f64,
    /// Mean over sequences of W.
    pub expected_w: f64,
}

impl VarianceProxy {
    /// From the means over sequences of what [`proxy_row`] finds.
    pub(crate) fn of([power, a_squared, w]: [f64; 3], gradient_norm: f64, sequences: u64) -> Self {
        let signal = gradient_norm * gradient_norm;
        let noise = if sequences > 1 { (power - signal) / (sequences as f64 - 1.0) } else { 0.0 };
        Self {
            signal_strength: signal,
            total_power: power,
            pure_noise: if noise < 0.0 { 0.0 } else { noise },
            expected_a_squared: a_squared,
            expected_w: w,
        }
    }

    /// The keys as verl 0.9.1 logs them.
    pub fn entries(&self) -> [(&'static str, f64); 5] {
        [
            ("variance_proxy/proxy1_signal_strength", self.signal_strength),
            ("variance_proxy/proxy2_total_power", self.total_power),
            ("variance_proxy/proxy3_pure_noise", self.pure_noise),
            ("variance_proxy/expected_a_squared", self.expected_a_squared),
            ("variance_proxy/expected_w", self.expected_w),
        ]
    }
}

/// Signal and noise of the policy gradient, from the size of each token's score function.
///
/// ```text
/// s_t = 1 − 2 π_t + Σ_v π_v²      W_i = Σ_t s_t      a_i = mean_t A      w̄_i = mean_t w (1 without weights)
/// signal = ‖g‖²      power = mean_i w̄_i² a_i² max(W_i, 0)      noise = max(0, (power − signal) / (B − 1))
/// expected_w = mean_i Σ_t w_t² s_t
/// ```
///
/// `gradient_norm` is ‖g‖ of the whole batch.
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read. A sequence without kept tokens counts 0.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if the norm is negative or not
/// finite; [`Error::EmptyMask`] if there is no sequence.
///
/// **Reference.** verl 0.9.1 `compute_variance_proxy_metrics`, with [`Divisor::CountPlusEpsilon`]. It removes the
/// weights from W by dividing by `max(w², 1e-10)`: a token whose weight is below 1e-5 then counts less than its s, as
/// it does here.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Divisor, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, false, true, true]))?;
/// let never = f64::NEG_INFINITY;
/// let old_log_probs = [never, f64::NAN, never, never];
/// let sum_pi_squared = [0.0, f64::NAN, 0.0, 1.0];
/// let advantages = [2.0, f64::NAN, 1.0, 1.0];
/// let input = VarianceProxyInput::new(&old_log_probs, &sum_pi_squared, &advantages);
/// let config = VarianceProxyConfig { gradient_norm: 1.0, divisor: Divisor::Count };
/// let proxy = variance_proxy(&batch, input, &config)?;
/// assert_eq!((proxy.total_power, proxy.pure_noise, proxy.expected_w), (3.5, 2.5, 2.0));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn variance_proxy<R: Real>(
    batch: &Batch<'_>,
    input: VarianceProxyInput<'_, R>,
    config: &VarianceProxyConfig,
) -> Result<VarianceProxy> {
    let VarianceProxyConfig { gradient_norm, divisor } = *config;
    input.check(batch)?;
    check_not_negative::<R>("gradient_norm", gradient_norm)?;
    if batch.sequences() == 0 {
        return Err(Error::EmptyMask);
    }
    let rows = batch.sequences() as f64;
    let means = sums(batch, input, divisor).map(|sum| sum / rows);
    Ok(VarianceProxy::of(means, gradient_norm, batch.sequences() as u64))
}

#[multiversion]
fn sums<R: Real>(batch: &Batch<'_>, input: VarianceProxyInput<'_, R>, divisor: Divisor) -> [f64; 3] {
    let mut totals = [Sum::default(); 3];
    for row in batch.token_rows().filter(|row| row.last_kept().is_some()) {
        Sum::add_each(&mut totals, &proxy_row(&row, input, divisor));
    }
    Sum::values(&totals)
}

/// The power, the squared mean advantage and the weighted W of a sequence with kept tokens.
#[inline(always)]
pub(crate) fn proxy_row<R: Real>(row: &Row<'_>, input: VarianceProxyInput<'_, R>, divisor: Divisor) -> [f64; 3] {
    // without weights the advantages serve as a placeholder that does not affect the result
    let weights = input.weights.unwrap_or(input.advantages);
    let inputs = [input.old_log_probs, input.sum_pi_squared, input.advantages, weights];
    let sums = fold_row(row, inputs, [], |[old, squares, advantage, weight]| {
        let s = (R::one() - R::narrow(2.0) * exp(old) + squares).widen();
        let weight = if input.weights.is_some() { weight.widen() } else { 1.0 };
        let square = weight * weight;
        let scaled = s * square;
        let original = scaled / if square < 1e-10 { 1e-10 } else { square };
        ([], [advantage.widen(), weight, original, scaled])
    });
    let n = divisor.of(row.kept() as f64);
    let a = sums[0] / n;
    let mean_weight = if input.weights.is_some() { sums[1] / n } else { 1.0 };
    let w = if sums[2] < 0.0 { 0.0 } else { sums[2] };
    [mean_weight * mean_weight * (a * a) * w, a * a, sums[3]]
}
