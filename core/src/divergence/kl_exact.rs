use crate::{
    error::{check_len, Result},
    layout::Batch,
    math::exp,
    policy::{
        vocab_row::{block_sums, check_logits, Block, Terms, VocabRow},
        Logit, PolicyConfig,
    },
    real::Real,
    reduce::Sum,
    simd::{multiversion, vocab::BLOCK},
};

/// What [`kl_exact`] reads.
#[derive(Clone, Copy, Debug)]
pub struct KlExactInput<'a, L> {
    /// `[tokens, vocab]`, row-major: the policy's row that predicted each token.
    pub logits: &'a [L],
    /// The reference's rows, of the same shape.
    pub ref_logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
}

/// What [`kl_exact_gradient`] reads.
#[derive(Clone, Copy, Debug)]
pub struct KlExactGradientInput<'a, L: Logit> {
    /// `[tokens, vocab]`, row-major: the policy's row that predicted each token.
    pub logits: &'a [L],
    /// The reference's rows, of the same shape.
    pub ref_logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
    /// ∂loss/∂kl of each token.
    pub grad_kl: &'a [L::Compute],
}

/// The exact KL divergence over the whole vocabulary, which the one-sample estimators approximate.
///
/// ```text
/// kl_i = Σ_v p_v (ln p_v − ln q_v)        p, q = soft-max of logits / τ, ref_logits / τ
/// ```
///
/// Never negative beyond rounding. An entry with p = 0 contributes 0; p > 0 with q = 0 gives +inf.
///
/// **Alignment.** Action-aligned in and out: row `i` predicted token `i`.
///
/// **Mask.** Rows of dropped slots are never read; dropped slots get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch` and `vocab`;
/// [`Error::Config`](crate::Error::Config) if `vocab` is 0 or τ is not positive;
/// [`Error::Overflow`](crate::Error::Overflow) if `tokens × vocab` does not fit into a `usize`.
///
/// **Reference.** ROLL's `full`; verl 0.9.1 declares the name `full` but rejects it.
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::*, math, policy::PolicyConfig, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let logits = [0.0, f64::NEG_INFINITY, f64::NAN, f64::NAN];
/// let ref_logits = [0.0, 0.0, f64::NAN, f64::NAN];
/// let mut out = [9.0; 2];
/// kl_exact(
///     &batch,
///     KlExactInput { logits: &logits, ref_logits: &ref_logits, vocab: 2 },
///     &PolicyConfig::default(),
///     &mut out,
/// )?;
/// assert_eq!(out, [math::ln(2.0), 0.0]);      // certain against a fair coin
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_exact<L: Logit>(
    batch: &Batch<'_>,
    input: KlExactInput<'_, L>,
    config: &PolicyConfig,
    out: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_logits(batch, "ref_logits", input.ref_logits, input.vocab, config.temperature)?;
    check_len("out", out, batch.tokens())?;
    values(batch, input, scale, out);
    Ok(())
}

/// The gradient of a loss with respect to the policy's logits, from its gradient with respect to each token's exact KL.
///
/// ```text
/// ∂loss/∂logit_v = g_i p_v (ln p_v − ln q_v − kl_i) / τ        g = grad_kl
/// ```
///
/// The entries of a row add up to 0. Entries with p = 0 get 0.
///
/// **Alignment.** Action-aligned in and out: row `i` predicted token `i`.
///
/// **Mask.** Dropped slots are never read; their whole rows get 0.
///
/// **Errors.** As [`kl_exact`].
///
/// **Reference.** The derivative of [`kl_exact`]; the reference's logits are constants.
///
/// # Example
///
/// ```
/// use tokenwise::{divergence::*, policy::PolicyConfig, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let logits = [0.5, 0.5, f64::NAN, f64::NAN];
/// let mut grad_logits = [9.0; 4];
/// kl_exact_gradient(
///     &batch,
///     KlExactGradientInput { logits: &logits, ref_logits: &logits, vocab: 2, grad_kl: &[1.0, f64::NAN] },
///     &PolicyConfig::default(),
///     &mut grad_logits,
/// )?;
/// assert_eq!(grad_logits, [0.0; 4]);          // at the reference the divergence is smallest
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn kl_exact_gradient<L: Logit>(
    batch: &Batch<'_>,
    input: KlExactGradientInput<'_, L>,
    config: &PolicyConfig,
    grad_logits: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_logits(batch, "ref_logits", input.ref_logits, input.vocab, config.temperature)?;
    check_len("grad_kl", input.grad_kl, batch.tokens())?;
    check_len("grad_logits", grad_logits, input.logits.len())?;
    gradients(batch, input, scale, grad_logits);
    Ok(())
}

/// Both soft-max rows of one token, and their divergence.
struct Pair<R> {
    policy: VocabRow<R>,
    reference: VocabRow<R>,
    /// ln of the policy's sum minus ln of the reference's
    log_sums: R,
    inverse_sum: R,
    scale: R,
}

impl<R: Real> Pair<R> {
    #[inline(always)]
    fn read<L: Logit<Compute = R>>(logits: &[L], ref_logits: &[L], scale: R) -> Self {
        let (policy, reference) = (VocabRow::read(logits, scale), VocabRow::read(ref_logits, scale));
        let log_sums = R::narrow(policy.log_sum() - reference.log_sum());
        Self { policy, reference, log_sums, inverse_sum: R::narrow(1.0 / policy.sum), scale }
    }

    /// p and ln p − ln q of one entry.
    #[inline(always)]
    fn entry(&self, [z, w]: [R; 2]) -> (R, R) {
        let (distance, ref_distance) = (z - self.policy.max, w - self.reference.max);
        (exp(distance) * self.inverse_sum, distance - ref_distance - self.log_sums)
    }

    #[inline(always)]
    fn divergence<L: Logit<Compute = R>>(&self, logits: &[L], ref_logits: &[L]) -> f64 {
        let mut sum = Sum::default();
        let (mut block, mut ref_block) = (Block::new(), Block::new());
        for (logits, ref_logits) in logits.chunks(BLOCK).zip(ref_logits.chunks(BLOCK)) {
            block.load(logits, self.scale);
            ref_block.load(ref_logits, self.scale);
            let [part] = block_sums([block.view(), ref_block.view()], self);
            sum.add(part);
        }
        sum.value()
    }
}

impl<R: Real> Terms<R, 2, 1> for Pair<R> {
    #[inline(always)]
    fn of(&self, z: [R; 2]) -> [R; 1] {
        let (p, log_ratio) = self.entry(z);
        // 0 · ±inf would be NaN
        [if p == R::zero() { R::zero() } else { p * log_ratio }]
    }
}

#[multiversion]
fn values<L: Logit>(batch: &Batch<'_>, input: KlExactInput<'_, L>, scale: L::Compute, out: &mut [L::Compute]) {
    let rows = input.logits.chunks_exact(input.vocab).zip(input.ref_logits.chunks_exact(input.vocab));
    for (((logits, ref_logits), &keep), out) in rows.zip(batch.mask().as_slice()).zip(out) {
        *out = if keep {
            L::Compute::narrow(Pair::read(logits, ref_logits, scale).divergence(logits, ref_logits))
        } else {
            L::Compute::zero()
        };
    }
}

#[multiversion]
fn gradients<L: Logit>(
    batch: &Batch<'_>,
    input: KlExactGradientInput<'_, L>,
    scale: L::Compute,
    grad: &mut [L::Compute],
) {
    let rows = input.logits.chunks_exact(input.vocab).zip(input.ref_logits.chunks_exact(input.vocab));
    let rows = rows.zip(grad.chunks_exact_mut(input.vocab));
    for (slot, (((logits, ref_logits), grad), &keep)) in rows.zip(batch.mask().as_slice()).enumerate() {
        if !keep {
            grad.fill(L::Compute::zero());
            continue;
        }
        let pair = Pair::read(logits, ref_logits, scale);
        let kl = L::Compute::narrow(pair.divergence(logits, ref_logits));
        let g = input.grad_kl[slot] * scale;
        for ((grad, &z), &w) in grad.iter_mut().zip(logits).zip(ref_logits) {
            let (p, log_ratio) = pair.entry([z.load() * scale, w.load() * scale]);
            *grad = if p == L::Compute::zero() { L::Compute::zero() } else { g * p * (log_ratio - kl) };
        }
    }
}
