use super::{
    vocab_row::{check_logits, check_tokens, VocabRow},
    Logit, PolicyConfig,
};
use crate::{
    error::{check_len, Result},
    layout::Batch,
    math::{exp, exp_near},
    parallel::{in_order, Part, Work},
    real::Real,
    simd::multiversion,
};

/// What [`logits_gradient`] reads.
#[derive(Clone, Copy, Debug)]
pub struct LogitsGradientInput<'a, L: Logit> {
    /// `[tokens, vocab]`, row-major: the row that predicted each token.
    pub logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
    /// The id of each token.
    pub tokens: &'a [u32],
    /// ∂loss/∂log_probs, as the losses write it.
    pub grad_log_probs: &'a [L::Compute],
    /// ∂loss/∂entropy, as [`entropy_bonus`](crate::loss::entropy_bonus) writes it; zeros if there is no bonus.
    pub grad_entropy: &'a [L::Compute],
}

impl<L: Logit> LogitsGradientInput<'_, L> {
    /// The input of a part of the tokens.
    fn part(&self, part: &Part<'_>) -> Self {
        Self {
            logits: part.rows_of(self.logits, self.vocab),
            vocab: self.vocab,
            tokens: part.of(self.tokens),
            grad_log_probs: part.of(self.grad_log_probs),
            grad_entropy: part.of(self.grad_entropy),
        }
    }
}

/// The gradient of a loss with respect to the logits, from its gradients with respect to log-probabilities and entropy.
///
/// ```text
/// ∂loss/∂logit_v = ( g_i (1[v = a_i] − p_v) − h_i p_v (ln p_v + H) ) / τ        g = grad_log_probs, h = grad_entropy
/// ```
///
/// The entries of a row add up to 0: adding a constant to all logits changes nothing. An entry of −inf gets 0.
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Dropped slots are never read; their whole rows get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length), [`Error::TokenId`](crate::Error::TokenId),
/// [`Error::Config`](crate::Error::Config) and [`Error::Overflow`](crate::Error::Overflow) as for
/// [`log_probs_and_entropy`](super::log_probs_and_entropy).
///
/// **Reference.** Equal to the autograd of verl 0.9.1's `logprobs_from_logits` and `entropy_from_logits`.
///
/// # Example
///
/// ```
/// use tokenwise::{policy::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let mut grad_logits = [9.0; 4];
/// logits_gradient(
///     &batch,
///     LogitsGradientInput {
///         logits: &[0.0, 0.0, f64::NAN, f64::NAN],
///         vocab: 2,
///         tokens: &[1, 0],
///         grad_log_probs: &[1.0, f64::NAN],
///         grad_entropy: &[0.0, f64::NAN],
///     },
///     &PolicyConfig::default(),
///     &mut grad_logits,
/// )?;
/// assert_eq!(grad_logits, [-0.5, 0.5, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn logits_gradient<L: Logit>(
    batch: &Batch<'_>,
    input: LogitsGradientInput<'_, L>,
    config: &PolicyConfig,
    grad_logits: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_tokens(batch, input.tokens, input.vocab)?;
    check_len("grad_log_probs", input.grad_log_probs, batch.tokens())?;
    check_len("grad_entropy", input.grad_entropy, batch.tokens())?;
    check_len("grad_logits", grad_logits, input.logits.len())?;
    in_order(
        &batch.token_by_token(),
        Work { width: input.vocab, per_token: input.vocab },
        [grad_logits],
        |part, [grad], _| write(&part.batch, input.part(part), scale, grad),
        |()| (),
    );
    Ok(())
}

#[multiversion(avx512)]
fn write<L: Logit>(batch: &Batch<'_>, input: LogitsGradientInput<'_, L>, scale: L::Compute, grad: &mut [L::Compute]) {
    let rows = input.logits.chunks_exact(input.vocab).zip(grad.chunks_exact_mut(input.vocab));
    for (slot, ((logits, grad), &keep)) in rows.zip(batch.mask().as_slice()).enumerate() {
        if !keep {
            grad.fill(L::Compute::zero());
            continue;
        }
        let row = VocabRow::read(logits, scale);
        let (g, h) = (input.grad_log_probs[slot] * scale, input.grad_entropy[slot] * scale);
        let inverse_sum = L::Compute::narrow(1.0 / row.sum);
        // ln p + H = (z − m) − Σ p (z − m)
        let mean_distance = L::Compute::narrow(row.weighted / row.sum);
        let slope = |distance: L::Compute, term: L::Compute| {
            let p = term * inverse_sum;
            // written so that NaN propagates, and −inf · 0 does not become NaN
            if p == L::Compute::zero() {
                L::Compute::zero()
            } else {
                -p * (g + h * (distance - mean_distance))
            }
        };
        if row.near {
            for (grad, logit) in grad.iter_mut().zip(logits) {
                let distance = logit.load() * scale - row.max;
                *grad = slope(distance, exp_near(distance));
            }
        } else {
            for (grad, logit) in grad.iter_mut().zip(logits) {
                let distance = logit.load() * scale - row.max;
                *grad = slope(distance, exp(distance));
            }
        }
        let token = input.tokens[slot] as usize;
        if logits[token].load() * scale == row.max {
            // p = 1 / sum; in g − p g the small 1 − p of a nearly certain token would be lost
            let others = L::Compute::narrow(row.rest / row.sum);
            grad[token] = g * others + inverse_sum * (h * mean_distance);
        } else {
            grad[token] += g;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    #[test]
    fn the_gradient_of_a_nearly_certain_token_is_relatively_accurate() {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        for distance in [5.0_f32, 20.0, 40.0] {
            let mut grad = [9.0_f32; 2];
            let input = LogitsGradientInput {
                logits: &[-distance, 0.0],
                vocab: 2,
                tokens: &[1],
                grad_log_probs: &[1.0],
                grad_entropy: &[0.0],
            };
            logits_gradient(&batch, input, &PolicyConfig::default(), &mut grad).unwrap();
            let other = libm::exp(-f64::from(distance));
            let expected = other / (1.0 + other);
            approx::assert_relative_eq!(f64::from(grad[1]), expected, max_relative = 3e-7);
            approx::assert_relative_eq!(f64::from(grad[0]), -expected, max_relative = 3e-7);
        }
    }
}
