use super::topk::{check_rows, jsd_entry, log_sum, sum};
use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    loss::Aggregate,
    math::{exp, ln},
    real::Real,
    reduce::Sum,
};

/// How the probability outside the entries is treated.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TopKRest {
    /// As one more entry: `1 − Σ p`, at least `1 − e^{−1e-7}`, with gradient 0 below. TRL 1.16 `add_tail`.
    #[default]
    Tail,
    /// Ignored: the entries are scaled to sum to 1. TRL 1.16 without `add_tail`.
    Renormalize,
}

/// What [`topk_jsd`] reads.
#[derive(Clone, Copy, Debug)]
pub struct TopKInput<'a, R> {
    /// `[tokens, k]`, row-major: the student's log-probabilities of some tokens; the gradient is taken with respect to
    /// these. −inf in both rows marks an absent entry, so that tokens may have different numbers of entries.
    pub log_probs: &'a [R],
    /// `[tokens, k]`: the teacher's log-probabilities of the same tokens; constants.
    pub teacher_log_probs: &'a [R],
    /// Entries per token.
    pub k: usize,
    /// A weight for each token's loss, such as a capped importance weight; constants. `None` gives weight 1.
    pub weights: Option<&'a [R]>,
}

impl<'a, R> TopKInput<'a, R> {
    /// Every token has weight 1.
    pub const fn new(log_probs: &'a [R], teacher_log_probs: &'a [R], k: usize) -> Self {
        Self { log_probs, teacher_log_probs, k, weights: None }
    }
}

/// How [`topk_jsd`] compares student and teacher.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct TopKJsdConfig<'a> {
    /// 0 forward KL, 1 reverse KL, between them the mixture; default 0.5.
    pub beta: f64,
    /// Default [`TopKRest::Tail`].
    pub rest: TopKRest,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for TopKJsdConfig<'_> {
    fn default() -> Self {
        Self { beta: 0.5, rest: TopKRest::Tail, aggregate: Aggregate::default() }
    }
}

/// The lower bound of the probability outside the entries, −expm1(−1e-7).
const LEAST: f64 = 9.999_999_500_000_017e-8;

/// [`generalized_jsd`](super::generalized_jsd) over a few tokens instead of the vocabulary. Returns the loss.
///
/// ```text
/// Tail: p_rest = 1 − Σ_j p_j is one more entry        Renormalize: p_j / Σ_i p_i
/// loss = Agg_t Σ_j D_j
/// ∂loss/∂s_j = W_t (D'_j − p_j D'_rest / p_rest), W_t (D'_j − p_j Σ_i D'_i)
/// ```
///
/// with `D_j` the entry's term of the divergence and `D'_j` its derivative with respect to the entry's log-probability.
/// The gradient is written into `grad`. [`topk_log_probs`](crate::policy::topk_log_probs) and
/// [`topk_logits_gradient`](crate::policy::topk_logits_gradient) convert between logits and entries, forward and
/// backward.
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Rows of dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch` and `k`;
/// [`Error::Config`](crate::Error::Config) if `k` is 0 or β outside `[0, 1]`;
/// [`Error::Overflow`](crate::Error::Overflow) if `tokens × k` does not fit into a machine word; the errors of
/// [`aggregate`](crate::loss::aggregate).
///
/// **Reference.** TRL 1.16 `compute_topk_self_distillation_loss` (SDFT, SDPO: the student's top k) and
/// `generalized_jsd_loss` with `top_k` (the teacher's, the student's, or both). Its `distillation_is_clip` is
/// [`rollout_weights`](crate::rollout::rollout_weights) with `Truncate` and a log bound of 20, as `weights`.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let log_probs = [math::ln(0.25), f64::NAN];
/// let teacher_log_probs = [math::ln(0.5), f64::NAN];
/// let input = TopKInput::new(&log_probs, &teacher_log_probs, 1);
/// let mut grad = [9.0; 2];
/// let config = TopKJsdConfig { beta: 0.0, ..Default::default() };
/// let loss = topk_jsd(&batch, input, &config, &mut grad)?;
/// approx::assert_abs_diff_eq!(loss, 0.5 * math::ln(4.0 / 3.0), epsilon = 1e-15); // ½ ln 2 + ½ ln ⅔
/// approx::assert_abs_diff_eq!(grad[0], -1.0 / 3.0, epsilon = 1e-15);              // −½ + ¼ · ½ / ¾
/// assert_eq!(grad[1], 0.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn topk_jsd<R: Real>(
    batch: &Batch<'_>,
    input: TopKInput<'_, R>,
    config: &TopKJsdConfig<'_>,
    grad: &mut [R],
) -> Result<f64> {
    let k = input.k;
    let len = check_rows(batch, k, input.log_probs, input.teacher_log_probs)?;
    if let Some(weights) = input.weights {
        check_len("weights", weights, batch.tokens())?;
    }
    check_len("grad", grad, len)?;
    check_unit("beta", config.beta)?;
    let plan = config.aggregate.plan(batch)?;
    let mut loss = Sum::default();
    for (row, weight) in plan.rows(batch) {
        let mut total = Sum::default();
        for t in 0..row.keep.len() {
            let slot = row.start + t;
            let entries = slot * k..(slot + 1) * k;
            let out = &mut grad[entries.clone()];
            if !row.keep[t] {
                out.fill(R::zero());
                continue;
            }
            let omega = input.weights.map_or(1.0, |weights| weights[slot].widen());
            let (s, t) = (&input.log_probs[entries.clone()], &input.teacher_log_probs[entries]);
            total.add(omega * divergence(s, t, config, omega * weight, out));
        }
        loss.add(weight * total.value());
    }
    Ok(loss.value())
}

/// The divergence of one token; writes its gradient times a weight.
fn divergence<R: Real>(s: &[R], t: &[R], config: &TopKJsdConfig<'_>, weight: f64, grad: &mut [R]) -> f64 {
    // the log of the normaliser of each row
    let (of_s, of_t) = match config.rest {
        TopKRest::Tail => (0.0, 0.0),
        TopKRest::Renormalize => (log_sum(s), log_sum(t)),
    };
    let entry = |s: f64, t: f64| {
        let (s, t) = (s - of_s, t - of_t);
        jsd_entry(exp(s), exp(t), s - t, config.beta)
    };
    // −inf in both rows marks an absent entry, whose ratio would be NaN
    let absent = |s: f64, t: f64| (s == f64::NEG_INFINITY) & (t == f64::NEG_INFINITY);
    let part = |s: f64, t: f64| if absent(s, t) { (0.0, 0.0) } else { entry(s, t) };
    let (rest, pull) = match config.rest {
        TopKRest::Renormalize => (0.0, sum(s, t, |s, t| part(s, t).1)),
        TopKRest::Tail => {
            let (p, q) = (1.0 - sum(s, s, |s, _| exp(s)), 1.0 - sum(t, t, |t, _| exp(t)));
            let held = |x: f64| if x < LEAST { LEAST } else { x };
            let (value, slope) = jsd_entry(held(p), held(q), ln(held(p)) - ln(held(q)), config.beta);
            (value, if p < LEAST { 0.0 } else { slope / p })
        }
    };
    let value = sum(s, t, |s, t| part(s, t).0) + rest;
    for ((grad, s), t) in grad.iter_mut().zip(s).zip(t) {
        let (s, t) = (s.widen(), t.widen());
        let slope = if absent(s, t) { 0.0 } else { part(s, t).1 - exp(s - of_s) * pull };
        *grad = R::narrow(if value.is_nan() { value } else { weight * slope });
    }
    value
}
