//! Soft-max and the quantities computed from it.

use super::Tokens;

/// The logarithms of the probabilities of one row of logits.
pub(crate) fn log_softmax(logits: &[f64], temperature: f64) -> Vec<f64> {
    let scaled: Vec<f64> = logits.iter().map(|logit| logit / temperature).collect();
    let largest = scaled.iter().fold(f64::NEG_INFINITY, |max, &z| max.max(z));
    let log_sum = scaled.iter().map(|z| (z - largest).exp()).sum::<f64>().ln();
    scaled.iter().map(|z| z - largest - log_sum).collect()
}

fn row(logits: &[f64], vocab: usize, slot: usize) -> &[f64] {
    &logits[slot * vocab..(slot + 1) * vocab]
}

/// −Σ p ln p of one row.
pub(crate) fn entropy_of(log_probs: &[f64]) -> f64 {
    -log_probs.iter().filter(|l| l.is_finite()).map(|l| l.exp() * l).sum::<f64>()
}

/// ln p of each emitted token.
pub(crate) fn token_log_probs(
    tokens: Tokens<'_>,
    logits: &[f64],
    vocab: usize,
    ids: &[u32],
    temperature: f64,
) -> Vec<f64> {
    tokens.fill(|slot| log_softmax(row(logits, vocab, slot), temperature)[ids[slot] as usize])
}

/// ln p of some vocabulary entries for each token; `k` ids per token.
pub(crate) fn topk_log_probs(
    tokens: Tokens<'_>,
    logits: &[f64],
    vocab: usize,
    (ids, k): (&[u32], usize),
    temperature: f64,
) -> Vec<f64> {
    let mut out = vec![0.0; ids.len()];
    for slot in tokens.kept() {
        let log_probs = log_softmax(row(logits, vocab, slot), temperature);
        for j in slot * k..(slot + 1) * k {
            out[j] = log_probs[ids[j] as usize];
        }
    }
    out
}

/// ∂loss/∂logits through the log-probabilities of some entries.
pub(crate) fn topk_logits_gradient(
    tokens: Tokens<'_>,
    logits: &[f64],
    vocab: usize,
    (ids, k): (&[u32], usize),
    grad: &[f64],
    temperature: f64,
) -> Vec<f64> {
    let mut out = vec![0.0; logits.len()];
    for slot in tokens.kept() {
        let log_probs = log_softmax(row(logits, vocab, slot), temperature);
        for j in slot * k..(slot + 1) * k {
            for v in 0..vocab {
                let chosen = if ids[j] as usize == v { 1.0 } else { 0.0 };
                out[slot * vocab + v] += grad[j] * (chosen - log_probs[v].exp()) / temperature;
            }
        }
    }
    out
}

/// The entropy of each token's distribution.
pub(crate) fn entropy(tokens: Tokens<'_>, logits: &[f64], vocab: usize, temperature: f64) -> Vec<f64> {
    tokens.fill(|slot| entropy_of(&log_softmax(row(logits, vocab, slot), temperature)))
}

/// Σ p² of each token's distribution.
pub(crate) fn sum_squared_probs(tokens: Tokens<'_>, logits: &[f64], vocab: usize, temperature: f64) -> Vec<f64> {
    tokens.fill(|slot| log_softmax(row(logits, vocab, slot), temperature).iter().map(|l| l.exp() * l.exp()).sum())
}

/// The inputs of the gradient of the logits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upstream<'a> {
    /// Token ids.
    pub(crate) ids: &'a [u32],
    /// ∂loss/∂log_probs.
    pub(crate) grad_log_probs: &'a [f64],
    /// ∂loss/∂entropy.
    pub(crate) grad_entropy: &'a [f64],
}

/// ∂loss/∂logits through log-probability and entropy.
pub(crate) fn logits_gradient(
    tokens: Tokens<'_>,
    logits: &[f64],
    vocab: usize,
    up: Upstream<'_>,
    temperature: f64,
) -> Vec<f64> {
    let mut out = vec![0.0; logits.len()];
    for slot in tokens.kept() {
        let log_probs = log_softmax(row(logits, vocab, slot), temperature);
        let entropy = entropy_of(&log_probs);
        for v in 0..vocab {
            let p = log_probs[v].exp();
            let chosen = if up.ids[slot] as usize == v { 1.0 } else { 0.0 };
            let through_log_prob = up.grad_log_probs[slot] * (chosen - p);
            let through_entropy = -up.grad_entropy[slot] * p * (log_probs[v] + entropy);
            out[slot * vocab + v] = (through_log_prob + through_entropy) / temperature;
        }
    }
    out
}
