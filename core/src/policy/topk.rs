use super::{
    vocab_row::{check_logits, VocabRow},
    Logit, PolicyConfig,
};
use crate::{
    error::{check_config, check_len, checked_size, Error, Result},
    layout::Batch,
    math::exp,
    real::Real,
    simd::multiversion,
};

/// What [`topk_log_probs`] reads.
#[derive(Clone, Copy, Debug)]
pub struct TopKLogitsInput<'a, L> {
    /// `[tokens, vocab]`, row-major: the row that predicted each token (see [`shift`](crate::shift)).
    pub logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
    /// `[tokens, k]`: ids of some vocabulary entries for each token, such as a teacher's most likely ones.
    pub tokens: &'a [u32],
    /// Ids per token.
    pub k: usize,
}

/// What [`topk_logits_gradient`] reads.
#[derive(Clone, Copy, Debug)]
pub struct TopKGradientInput<'a, L: Logit> {
    /// `[tokens, vocab]`, row-major: the row that predicted each token (see [`shift`](crate::shift)).
    pub logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
    /// `[tokens, k]`: the ids whose log-probabilities the loss read.
    pub tokens: &'a [u32],
    /// Ids per token.
    pub k: usize,
    /// `[tokens, k]`: ∂loss/∂ of each of those log-probabilities.
    pub grad_log_probs: &'a [L::Compute],
}

/// Log-probabilities of several vocabulary entries for each token, such as the most likely ones under a teacher.
///
/// ```text
/// out_ij = z[a_ij] − m − ln Σ_v e^{z_v − m}        z = logits / τ,  m = max z,  j = 1 … k
/// ```
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Rows and ids of dropped slots are never read; dropped slots get 0.
///
/// **Errors.** As [`log_probs_and_entropy`](super::log_probs_and_entropy); [`Error::Config`] also if `k` is 0.
///
/// **Reference.** The student's side of verl 0.9.1 `forward_kl_topk`, TRL 1.16 `compute_topk_self_distillation_loss`
/// and NeMo-RL's distillation (2026-08).
///
/// # Example
///
/// ```
/// use tokenwise::{math, policy::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let logits = [2.0, 2.0, f64::NEG_INFINITY, f64::NAN, f64::NAN, f64::NAN];
/// let mut out = [9.0; 4];
/// let input = TopKLogitsInput { logits: &logits, vocab: 3, tokens: &[1, 2, 99, 99], k: 2 };
/// topk_log_probs(&batch, input, &PolicyConfig::default(), &mut out)?;
/// assert_eq!(out, [-math::ln(2.0), f64::NEG_INFINITY, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn topk_log_probs<L: Logit>(
    batch: &Batch<'_>,
    input: TopKLogitsInput<'_, L>,
    config: &PolicyConfig,
    out: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    let len = check_ids(batch, input.tokens, input.k, input.vocab)?;
    check_len("out", out, len)?;
    read(batch, input, scale, out);
    Ok(())
}

/// The gradient of a loss with respect to the logits, from its gradient with respect to the log-probabilities of some
/// entries.
///
/// ```text
/// ∂loss/∂logit_v = (Σ_{j: a_j = v} g_j − p_v Σ_j g_j) / τ        g = grad_log_probs
/// ```
///
/// The entries of a row add up to 0.
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Dropped slots are never read; their whole rows get 0.
///
/// **Errors.** As [`topk_log_probs`].
///
/// **Reference.** The derivative of [`topk_log_probs`]. Propagates the gradients of
/// [`forward_kl_topk`](crate::loss::forward_kl_topk), [`topk_jsd`](crate::loss::topk_jsd) and
/// [`mixed_kl_topk`](crate::loss::mixed_kl_topk) to the logits.
///
/// # Example
///
/// ```
/// use tokenwise::{policy::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let mut grad_logits = [9.0; 4];
/// let input = TopKGradientInput {
///     logits: &[0.0, 0.0, f64::NAN, f64::NAN],
///     vocab: 2,
///     tokens: &[0, 1, 99, 99],
///     k: 2,
///     grad_log_probs: &[1.0, -0.5, f64::NAN, f64::NAN],
/// };
/// topk_logits_gradient(&batch, input, &PolicyConfig::default(), &mut grad_logits)?;
/// assert_eq!(grad_logits, [0.75, -0.75, 0.0, 0.0]);      // 1 − ½ · ½ and −½ − ½ · ½
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn topk_logits_gradient<L: Logit>(
    batch: &Batch<'_>,
    input: TopKGradientInput<'_, L>,
    config: &PolicyConfig,
    grad_logits: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    let len = check_ids(batch, input.tokens, input.k, input.vocab)?;
    check_len("grad_log_probs", input.grad_log_probs, len)?;
    check_len("grad_logits", grad_logits, input.logits.len())?;
    write(batch, input, scale, grad_logits);
    Ok(())
}

/// Rejects an id of a kept token that is not in the vocabulary; returns `tokens × k`.
fn check_ids(batch: &Batch<'_>, ids: &[u32], k: usize, vocab: usize) -> Result<usize> {
    check_config("k", "at least 1", k as f64, k > 0)?;
    let len = checked_size("tokens × k", batch.tokens(), k)?;
    check_len("tokens", ids, len)?;
    for (slot, ids) in ids.chunks_exact(k).enumerate().filter(|&(slot, _)| batch.mask().as_slice()[slot]) {
        if let Some(at) = ids.iter().position(|&id| id as usize >= vocab) {
            return Err(Error::TokenId { index: slot * k + at, id: ids[at], vocab });
        }
    }
    Ok(len)
}

#[multiversion]
fn read<L: Logit>(batch: &Batch<'_>, input: TopKLogitsInput<'_, L>, scale: L::Compute, out: &mut [L::Compute]) {
    let rows = input.logits.chunks_exact(input.vocab).zip(input.tokens.chunks_exact(input.k));
    for (((logits, ids), out), &keep) in rows.zip(out.chunks_exact_mut(input.k)).zip(batch.mask().as_slice()) {
        if !keep {
            out.fill(L::Compute::zero());
            continue;
        }
        let row = VocabRow::read(logits, scale);
        for (out, &id) in out.iter_mut().zip(ids) {
            *out = L::Compute::narrow(row.log_prob(logits[id as usize].load() * scale));
        }
    }
}

#[multiversion]
fn write<L: Logit>(batch: &Batch<'_>, input: TopKGradientInput<'_, L>, scale: L::Compute, grad: &mut [L::Compute]) {
    let rows = input.logits.chunks_exact(input.vocab).zip(grad.chunks_exact_mut(input.vocab));
    let chosen = input.tokens.chunks_exact(input.k).zip(input.grad_log_probs.chunks_exact(input.k));
    for (((logits, grad), (ids, g)), &keep) in rows.zip(chosen).zip(batch.mask().as_slice()) {
        if !keep {
            grad.fill(L::Compute::zero());
            continue;
        }
        let row = VocabRow::read(logits, scale);
        let inverse_sum = L::Compute::narrow(1.0 / row.sum);
        let total = L::Compute::narrow(g.iter().fold(0.0, |total, g| total + g.widen())) * scale;
        for (grad, logit) in grad.iter_mut().zip(logits) {
            *grad = -(exp(logit.load() * scale - row.max) * inverse_sum * total);
        }
        for (&id, &g) in ids.iter().zip(g) {
            grad[id as usize] += g * scale;
        }
    }
}
