use super::topk::{check_rows, log_sum, sum, weighted};
use crate::{
    error::{check_finite, check_len, check_unit, Result},
    layout::Batch,
    loss::Aggregate,
    math::exp,
    real::Real,
    reduce::Sum,
};

/// How [`mixed_kl_topk`] treats the student's probability outside the teacher's entries. The teacher's entries are
/// scaled to sum to 1 in either case.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum OutsideTopK {
    /// Ignored: the student's entries are scaled to sum to 1. NeMo-RL without `zero_outside_topk`.
    #[default]
    Renormalize,
    /// Penalised: the teacher's log-probability there is this finite number. NeMo-RL with `zero_outside_topk`: −100.
    LogProb(f64),
}

#[cfg(feature = "serde")]
crate::spelling::nullable! { OutsideTopK { Renormalize, LogProb(f64) } }

/// What [`mixed_kl_topk`] reads.
#[derive(Clone, Copy, Debug)]
pub struct MixedKlInput<'a, R> {
    /// `[tokens, k]`, row-major: the student's log-probabilities of the teacher's likeliest tokens.
    pub log_probs: &'a [R],
    /// `[tokens, k]`: the teacher's log-probabilities or logits of these; constants.
    pub teacher_log_probs: &'a [R],
    /// Entries per token.
    pub k: usize,
    /// One per token: the entropy of the student over the whole vocabulary; read with [`OutsideTopK::LogProb`] only.
    pub entropies: &'a [R],
}

/// The mixture of [`mixed_kl_topk`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct MixedKlConfig<'a> {
    /// The share w of forward KL, in `[0, 1]`: 1 forward alone, 0 reverse alone; default 0.5.
    pub forward: f64,
    /// Default [`OutsideTopK::Renormalize`].
    pub outside: OutsideTopK,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for MixedKlConfig<'_> {
    fn default() -> Self {
        Self { forward: 0.5, outside: OutsideTopK::Renormalize, aggregate: Aggregate::default() }
    }
}

/// What [`mixed_kl_topk`] writes.
#[derive(Debug)]
pub struct MixedKlOutput<'a, R> {
    /// `[tokens, k]`: ∂loss/∂log_probs.
    pub grad: &'a mut [R],
    /// One per token: ∂loss/∂entropies; 0 with [`OutsideTopK::Renormalize`].
    pub grad_entropies: &'a mut [R],
}

/// A mixture of both KL divergences over the teacher's likeliest tokens. Returns the loss.
///
/// ```text
/// L_t = w Σ_j q_j (ln q_j − s_j) + (1 − w) (Σ_j p_j (s_j − ln q_j) + R_t)        p = e^s, Σ_j q_j = 1
/// LogProb(c): R_t = (−H_t − Σ_j p_j s_j) − c (1 − Σ_j p_j)
///             ∂L/∂s_j = −w q_j + (1 − w) p_j (c − ln q_j)      ∂L/∂H = w − 1
/// Renormalize: R_t = 0, Σ_j p_j = 1      ∂L/∂s_j = w (p_j − q_j) + (1 − w) p_j (s_j − ln q_j − KL)
/// ```
///
/// R is the contribution of the student's other tokens to the reverse KL if the teacher's log-probability there is c.
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Rows of dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch` and `k`;
/// [`Error::Config`](crate::Error::Config) if `k` is 0, w outside `[0, 1]` or c not finite;
/// [`Error::Overflow`](crate::Error::Overflow) if `tokens × k` does not fit into a machine word; the errors of
/// [`aggregate`](crate::loss::aggregate).
///
/// **Reference.** NeMo-RL (2026-08) `DistillationLossFn`, with the token mean; forward alone has no R there either.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let input = MixedKlInput {
///     log_probs: &[0.0, 0.0, f64::NAN, f64::NAN],
///     teacher_log_probs: &[0.0, 0.0, f64::NAN, f64::NAN],      // logits will do
///     k: 2,
///     entropies: &[f64::NAN; 2],
/// };
/// let (mut grad, mut grad_entropies) = ([9.0; 4], [9.0; 2]);
/// let output = MixedKlOutput { grad: &mut grad, grad_entropies: &mut grad_entropies };
/// assert_eq!(mixed_kl_topk(&batch, input, &MixedKlConfig::default(), output)?, 0.0);
/// assert_eq!((grad, grad_entropies), ([0.0; 4], [0.0; 2]));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn mixed_kl_topk<R: Real>(
    batch: &Batch<'_>,
    input: MixedKlInput<'_, R>,
    config: &MixedKlConfig<'_>,
    output: MixedKlOutput<'_, R>,
) -> Result<f64> {
    let MixedKlOutput { grad, grad_entropies } = output;
    let k = input.k;
    let len = check_rows(batch, k, input.log_probs, input.teacher_log_probs)?;
    check_len("entropies", input.entropies, batch.tokens())?;
    check_len("grad", grad, len)?;
    check_len("grad_entropies", grad_entropies, batch.tokens())?;
    check_unit("forward", config.forward)?;
    if let OutsideTopK::LogProb(c) = config.outside {
        check_finite::<R>("log_prob", c)?;
    }
    let plan = config.aggregate.plan(batch)?;
    let mut loss = Sum::default();
    for (row, weight) in plan.rows(batch) {
        let mut total = Sum::default();
        for t in 0..row.keep.len() {
            let slot = row.start + t;
            let entries = slot * k..(slot + 1) * k;
            let out = &mut grad[entries.clone()];
            grad_entropies[slot] = R::zero();
            if !row.keep[t] {
                out.fill(R::zero());
                continue;
            }
            let (s, q) = (&input.log_probs[entries.clone()], &input.teacher_log_probs[entries]);
            let (value, by_entropy) = token(s, q, input.entropies[slot], config, weight, out);
            grad_entropies[slot] = R::narrow(weight * by_entropy);
            total.add(value);
        }
        loss.add(weight * total.value());
    }
    Ok(loss.value())
}

/// The loss of one token and its derivative with respect to the entropy; writes the gradient times a weight.
fn token<R: Real>(s: &[R], q: &[R], entropy: R, config: &MixedKlConfig<'_>, weight: f64, grad: &mut [R]) -> (f64, f64) {
    let (forward, reverse) = (config.forward, 1.0 - config.forward);
    let of_q = log_sum(q);
    let of_s = if config.outside == OutsideTopK::Renormalize { log_sum(s) } else { 0.0 };
    let (ln_p, ln_q) = (|s: f64| s - of_s, |q: f64| q - of_q);
    let ahead = sum(s, q, |s, q| weighted(exp(ln_q(q)), ln_q(q) - ln_p(s)));
    let back = sum(s, q, |s, q| weighted(exp(ln_p(s)), ln_p(s) - ln_q(q)));
    let (rest, by_entropy) = match config.outside {
        // forward KL alone does not need the entropy
        OutsideTopK::LogProb(c) if reverse != 0.0 => {
            let inside = sum(s, s, |s, _| weighted(exp(s), s));
            let outside = 1.0 - sum(s, s, |s, _| exp(s));
            (-entropy.widen() - inside - c * outside, -reverse)
        }
        _ => (0.0, 0.0),
    };
    // a share of 0 drops its term even if that is not finite
    let value = weighted(forward, ahead) + weighted(reverse, back + rest);
    for ((grad, s), q) in grad.iter_mut().zip(s).zip(q) {
        let (ln_p, ln_q) = (ln_p(s.widen()), ln_q(q.widen()));
        let (p, q) = (exp(ln_p), exp(ln_q));
        let slope = match config.outside {
            OutsideTopK::Renormalize => forward * (p - q) + reverse * weighted(p, ln_p - ln_q - back),
            OutsideTopK::LogProb(c) => reverse * weighted(p, c - ln_q) - forward * q,
        };
        *grad = R::narrow(if value.is_nan() { value } else { weight * slope });
    }
    (value, by_entropy)
}
