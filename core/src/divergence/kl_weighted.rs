use crate::{
    divergence::{
        kl_estimate::{gradient_of, value_of},
        KlBounds, KlConfig, KlEstimator, KlGradient,
    },
    error::{check_len, Result},
    layout::{Batch, Row},
    math::exp,
    real::Real,
    reduce::{fold_row, map_row, row_difference},
    simd::multiversion,
};

#[cfg(test)]
mod tests;

/// What [`kl_importance_weighted`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct KlWeightedInput<'a, R> {
    /// log π of each token.
    pub log_probs: &'a [R],
    /// log π_ref of each token.
    pub ref_log_probs: &'a [R],
    /// Log-probabilities under the policy that sampled the tokens.
    pub old_log_probs: &'a [R],
}

/// What [`kl_importance_weighted_gradient`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct KlWeightedGradientInput<'a, R> {
    /// log π of each token.
    pub log_probs: &'a [R],
    /// log π_ref of each token.
    pub ref_log_probs: &'a [R],
    /// Log-probabilities under the policy that sampled the tokens.
    pub old_log_probs: &'a [R],
    /// ∂loss/∂kl of each token.
    pub grad_kl: &'a [R],
}

/// The weight of a token's estimate. Weights are not detached: the gradient goes through both factors.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum KlWeight {
    /// `e^{log π − log π_old}` of the token. TRL 1.16 `use_bias_correction_kl`, Liger.
    #[default]
    Token,
    /// `e^{mean over the sequence}`, the same for all its tokens. TRL 1.16 with sequence-level ratios.
    Sequence,
    /// As `Token`, with the product clamped to ±10 and gradient 0 beyond. slime `use_unbiased_kl` with `low_var_kl`.
    TokenBounded,
    /// As `Token`, but an infinite or NaN weight counts as 0, and there is no gradient where K3's argument is beyond
    /// its bound. NeMo-RL with `use_on_policy_kl_approximation`.
    TokenFinite,
    /// 1, with derivative 1: adds the score-function term to the gradient, not to the value. NeMo-RL without that
    /// option.
    ScoreFunction,
}

/// Which weight and which estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct KlWeightedConfig {
    /// Default [`KlWeight::Token`].
    pub weight: KlWeight,
    /// Default K3, its own gradient, unbounded.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_kl"))]
    pub kl: KlConfig,
}

#[cfg(feature = "serde")]
crate::spelling::over_default! { read_kl: KlWeightedConfig.kl as KlConfig }

impl Default for KlWeightedConfig {
    fn default() -> Self {
        let kl = KlConfig { estimator: KlEstimator::K3, gradient: KlGradient::Own, bounds: KlBounds::Unbounded };
        Self { weight: KlWeight::Token, kl }
    }
}

/// KL to the reference, estimated from tokens of an older policy and importance-weighted to the current policy.
///
/// ```text
/// d = log π − log π_ref      out = w · k(d)      w = e^{log π − log π_old} of the token, or as KlWeight says
/// ```
///
/// Where π = π_old, the weight is 1 and this is [`kl_estimate`](crate::divergence::kl_estimate).
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0; a sequence's mean is over its kept tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** DeepSeek-V3.2, §3.1 ("unbiased KL estimate"). Weights by framework: [`KlWeight`].
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let input = KlWeightedInput {
///     log_probs: &[math::ln(2.0), f64::NAN],
///     ref_log_probs: &[math::ln(2.0) - 0.5, f64::NAN],
///     old_log_probs: &[0.0, f64::NAN],
/// };
/// let kl = KlConfig { estimator: KlEstimator::K2, ..Default::default() };
/// let mut out = [9.0; 2];
/// kl_importance_weighted(&batch, input, &KlWeightedConfig { kl, ..Default::default() }, &mut out)?;
/// assert_eq!(out, [0.25, 0.0]);        // 2 · ½ · 0.5²
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_importance_weighted<R: Real>(
    batch: &Batch<'_>,
    input: KlWeightedInput<'_, R>,
    config: &KlWeightedConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    values(batch, input, config, out);
    Ok(())
}

/// The gradient of a loss with respect to the log-probabilities, from its gradient with respect to each token's
/// weighted KL.
///
/// ```text
/// ∂loss/∂log π_t = g_t w k'(d_t) + g_t w k(d_t)                         one weight per token
/// ∂loss/∂log π_t = g_t w k'(d_t) + (w / n) Σ_s g_s k(d_s)               one weight per sequence of n kept tokens
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** As [`kl_importance_weighted`].
///
/// **Reference.** Equal to the autograd of TRL 1.16 and Liger. [`KlGradient::StraightThrough`] uses `d` as `k'`.
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let log_probs = [-1.0, f64::NAN];
/// let input = KlWeightedGradientInput {
///     log_probs: &log_probs,
///     ref_log_probs: &[-1.5, f64::NAN],
///     old_log_probs: &log_probs,
///     grad_kl: &[1.0, f64::NAN],
/// };
/// let kl = KlConfig { estimator: KlEstimator::K2, ..Default::default() };
/// let mut grad = [9.0; 2];
/// kl_importance_weighted_gradient(&batch, input, &KlWeightedConfig { kl, ..Default::default() }, &mut grad)?;
/// assert_eq!(grad, [0.625, 0.0]);        // d + d²/2
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_importance_weighted_gradient<R: Real>(
    batch: &Batch<'_>,
    input: KlWeightedGradientInput<'_, R>,
    config: &KlWeightedConfig,
    grad: &mut [R],
) -> Result<()> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("grad_kl", input.grad_kl, batch.tokens())?;
    check_len("grad", grad, batch.tokens())?;
    gradients(batch, input, config, grad);
    Ok(())
}

/// The weight shared by all tokens of a sequence.
#[inline(always)]
fn sequence_weight<R: Real>(row: &Row<'_>, log_probs: &[R], old_log_probs: &[R]) -> R {
    let sum = row_difference(row, log_probs, old_log_probs);
    exp(R::narrow(sum / row.kept().max(1) as f64))
}

#[inline(always)]
fn token_weight<R: Real>(weight: KlWeight, log_ratio: R) -> R {
    match weight {
        KlWeight::ScoreFunction => R::one(),
        KlWeight::TokenFinite => {
            let ratio = exp(log_ratio);
            if ratio.is_finite() {
                ratio
            } else {
                R::zero()
            }
        }
        _ => exp(log_ratio),
    }
}

/// Whether a product is strictly beyond slime's bound.
#[inline(always)]
fn beyond<R: Real>(weight: KlWeight, product: R) -> bool {
    weight == KlWeight::TokenBounded && product.abs() > R::narrow(10.0)
}

#[multiversion]
fn values<R: Real>(batch: &Batch<'_>, input: KlWeightedInput<'_, R>, config: &KlWeightedConfig, out: &mut [R]) {
    for row in batch.token_rows() {
        let of_sequence =
            (config.weight == KlWeight::Sequence).then(|| sequence_weight(&row, input.log_probs, input.old_log_probs));
        let inputs = [input.log_probs, input.ref_log_probs, input.old_log_probs];
        map_row(&row, inputs, out, |[new, reference, old]| {
            let weight = of_sequence.unwrap_or_else(|| token_weight(config.weight, new - old));
            let product = weight * value_of(&config.kl, new - reference);
            let bound = R::narrow(10.0);
            let bounded = if product > R::zero() { bound } else { -bound };
            if beyond(config.weight, product) {
                bounded
            } else {
                product
            }
        });
    }
}

#[multiversion]
fn gradients<R: Real>(
    batch: &Batch<'_>,
    input: KlWeightedGradientInput<'_, R>,
    config: &KlWeightedConfig,
    grad: &mut [R],
) {
    let inputs = [input.log_probs, input.ref_log_probs, input.old_log_probs, input.grad_kl];
    for row in batch.token_rows() {
        if config.weight == KlWeight::Sequence {
            let weight = sequence_weight(&row, input.log_probs, input.old_log_probs);
            let [sum] = fold_row(&row, inputs, [], |[new, reference, _, g]| {
                ([], [(g * value_of(&config.kl, new - reference)).widen()])
            });
            let shared = weight * R::narrow(sum / row.kept().max(1) as f64);
            map_row(&row, inputs, grad, |[new, reference, _, g]| {
                g * weight * gradient_of(&config.kl, new - reference) + shared
            });
            continue;
        }
        map_row(&row, inputs, grad, |[new, reference, old, g]| {
            let (d, weight) = (new - reference, token_weight(config.weight, new - old));
            let value = value_of(&config.kl, d);
            let unweighted = matches!(config.weight, KlWeight::TokenFinite | KlWeight::ScoreFunction)
                && config.kl.bounds == KlBounds::K3Only
                && config.kl.estimator == KlEstimator::K3
                && d.abs() > R::narrow(20.0);
            let zero = unweighted || beyond(config.weight, weight * value);
            if zero {
                R::zero()
            } else {
                g * weight * (gradient_of(&config.kl, d) + value)
            }
        });
    }
}
