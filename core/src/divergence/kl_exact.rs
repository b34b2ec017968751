use crate::{
    error::{check_len, Result},
    layout::Batch,
    math::{exp, near_zero, remainder_near_zero},
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
/// Never negative, and accurate also where the distributions are close: summed as Σ p_v (e^{−d} − 1 + d) with
/// d = ln p_v − ln q_v. Entries with p = 0 add nothing to Σ p d; p > 0 with q = 0 gives +inf.
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

/// Both soft-max rows of one token.
struct Pair<R> {
    policy: VocabRow<R>,
    reference: VocabRow<R>,
    /// Subtracted from the entries of both rows before they are compared.
    origins: [R; 2],
    /// ln p − ln q of two entries that lie at their origins, negative.
    shift: R,
    inverse_sums: [R; 2],
    scale: R,
}

impl<R: Real> Pair<R> {
    #[inline(always)]
    fn read<L: Logit<Compute = R>>(logits: &[L], ref_logits: &[L], scale: R) -> Self {
        let (policy, reference) = (VocabRow::read(logits, scale), VocabRow::read(ref_logits, scale));
        let maxima = [policy.max, reference.max];
        let apart = policy.max.widen() - reference.max.widen();
        let log_sums = policy.log_sum() - reference.log_sum();
        // Entries of close rows are compared as they are, which is exact; entries minus their maximum are rounded. Rows
        // that lie far apart, say because one has a constant added to it, need the latter.
        let (origins, shift) = if apart.abs() <= 1.0 { ([R::zero(); 2], apart + log_sums) } else { (maxima, log_sums) };
        let inverse_sums = [R::narrow(1.0 / policy.sum), R::narrow(1.0 / reference.sum)];
        Self { policy, reference, origins, shift: R::narrow(shift), inverse_sums, scale }
    }

    /// p and ln p − ln q of one entry.
    #[inline(always)]
    fn entry(&self, [z, w]: [R; 2]) -> (R, R) {
        let p = exp(z - self.policy.max) * self.inverse_sums[0];
        (p, (z - self.origins[0]) - (w - self.origins[1]) - self.shift)
    }

    /// The sum of a term over all entries.
    #[inline(always)]
    fn sum<L: Logit<Compute = R>>(&self, logits: &[L], ref_logits: &[L], term: &impl Terms<R, 2, 1>) -> f64 {
        let mut sum = Sum::default();
        let (mut block, mut ref_block) = (Block::<_, BLOCK>::new(), Block::<_, BLOCK>::new());
        for (logits, ref_logits) in logits.chunks(BLOCK).zip(ref_logits.chunks(BLOCK)) {
            block.load(logits, self.scale);
            ref_block.load(ref_logits, self.scale);
            let [part] = block_sums([block.view(), ref_block.view()], term);
            sum.add(part);
        }
        sum.value()
    }
}

/// `p (e^{−d} − 1 + d) = q − p + p d`, with `d = ln p − ln q`. Over a row these add up to Σ p d, since p and q both add
/// up to 1; but none is negative, so that they do not cancel where the distributions are close. An error in `d` that is
/// common to all entries, such as that of the logarithms of the sums, shows in its square only.
struct Divergence<'a, R>(&'a Pair<R>);

impl<R: Real> Terms<R, 2, 1> for Divergence<'_, R> {
    #[inline(always)]
    fn of(&self, z: [R; 2]) -> [R; 1] {
        let pair = self.0;
        let (p, d) = pair.entry(z);
        let q = exp(z[1] - pair.reference.max) * pair.inverse_sums[1];
        // e^{−d} may overflow where q = p e^{−d} does not; 0 · ±inf would be NaN
        let far = if p == R::zero() { q } else { p * (d - R::one()) + q };
        [if near_zero(d) { p * remainder_near_zero(-d) } else { far }]
    }
}

/// `p d`.
struct MeanLogRatio<'a, R>(&'a Pair<R>);

impl<R: Real> Terms<R, 2, 1> for MeanLogRatio<'_, R> {
    #[inline(always)]
    fn of(&self, z: [R; 2]) -> [R; 1] {
        let (p, d) = self.0.entry(z);
        // 0 · ±inf would be NaN
        [if p == R::zero() { R::zero() } else { p * d }]
    }
}

#[multiversion]
fn values<L: Logit>(batch: &Batch<'_>, input: KlExactInput<'_, L>, scale: L::Compute, out: &mut [L::Compute]) {
    let rows = input.logits.chunks_exact(input.vocab).zip(input.ref_logits.chunks_exact(input.vocab));
    for (((logits, ref_logits), &keep), out) in rows.zip(batch.mask().as_slice()).zip(out) {
        *out = if keep {
            let pair = Pair::read(logits, ref_logits, scale);
            L::Compute::narrow(pair.sum(logits, ref_logits, &Divergence(&pair)))
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
        // not the divergence itself: what the logarithms of the sums are off by must cancel in `log_ratio − mean`
        let mean = L::Compute::narrow(pair.sum(logits, ref_logits, &MeanLogRatio(&pair)));
        let g = input.grad_kl[slot] * scale;
        for ((grad, &z), &w) in grad.iter_mut().zip(logits).zip(ref_logits) {
            let (p, log_ratio) = pair.entry([z.load() * scale, w.load() * scale]);
            *grad = if p == L::Compute::zero() { L::Compute::zero() } else { g * p * (log_ratio - mean) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    fn divergence<R: Real + Logit<Compute = R>>(logits: &[R], ref_logits: &[R]) -> R {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let mut out = [R::one()];
        let input = KlExactInput { logits, ref_logits, vocab: logits.len() };
        kl_exact(&batch, input, &PolicyConfig::default(), &mut out).unwrap();
        out[0]
    }

    fn noise(i: usize) -> f64 {
        f64::from((i as u32).wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24) - 0.5
    }

    /// Σ p (e^{−d} − 1 + d) in f64, for rows that are exact in f32.
    fn textbook(logits: &[f32], ref_logits: &[f32]) -> f64 {
        let log_sum = |z: &[f32]| libm::log(z.iter().fold(0.0, |sum, &z| sum + libm::exp(f64::from(z))));
        let sums = [log_sum(logits), log_sum(ref_logits)];
        logits.iter().zip(ref_logits).fold(0.0, |total, (&z, &w)| {
            let (p, q) = (f64::from(z) - sums[0], f64::from(w) - sums[1]);
            total + libm::exp(p) * (libm::expm1(q - p) - (q - p))
        })
    }

    #[test]
    fn close_distributions_are_accurate_and_not_negative() {
        // a row of two blocks is enough for miri, which takes seconds for a thousand entries
        let (vocabs, sizes): (&[usize], &[f64]) =
            if cfg!(miri) { (&[2, 520], &[1e-4]) } else { (&[2, 50, 512, 3000], &[1e-2, 1e-4, 3e-5]) };
        for &vocab in vocabs {
            for &size in sizes {
                let logits: Vec<f32> = (0..vocab).map(|i| (noise(i) * 8.0) as f32).collect();
                let ref_logits: Vec<f32> =
                    (0..vocab).map(|i| (noise(i) * 8.0 + size * noise(i + 77_777)) as f32).collect();
                let exact = textbook(&logits, &ref_logits);
                let single = divergence(&logits, &ref_logits);
                assert!(exact > 0.0 && single >= 0.0, "{vocab} {size} {single}");
                // f32 sums of a row are off by about 1e-7, whose square counts
                approx::assert_relative_eq!(f64::from(single), exact, epsilon = 1e-13, max_relative = 1e-5);
                let [wide, ref_wide] =
                    [&logits, &ref_logits].map(|z| z.iter().map(|&z| f64::from(z)).collect::<Vec<_>>());
                let double = divergence::<f64>(&wide, &ref_wide);
                approx::assert_relative_eq!(double, exact, max_relative = 1e-8);
            }
        }
    }

    #[test]
    fn rows_that_lie_far_apart_have_the_divergence_of_close_ones() {
        let logits: Vec<f32> = (0..600).map(|i| (noise(i) * 1024.0).round_ties_even() as f32 / 128.0).collect();
        let moved = |z: &[f32], by: f32| z.iter().map(|&z| z + by).collect::<Vec<_>>();
        let ref_logits: Vec<f32> = logits.iter().enumerate().map(|(i, z)| z + (i % 3) as f32 / 128.0).collect();
        let near = divergence(&logits, &ref_logits);
        approx::assert_relative_eq!(divergence(&moved(&logits, 4096.0), &ref_logits), near, max_relative = 1e-3);
        assert_eq!(divergence(&[3e38_f32, 3e38], &[-3e38, -3e38]), 0.0);
    }

    #[test]
    fn entries_without_probability() {
        let inf = f64::NEG_INFINITY;
        // p = 0 where q is a half; p > 0 where q = 0; both 0
        approx::assert_relative_eq!(divergence(&[0.0, inf], &[0.0, 0.0]), libm::log(2.0), max_relative = 1e-15);
        assert_eq!(divergence(&[0.0, 0.0], &[0.0, inf]), f64::INFINITY);
        assert_eq!(divergence(&[1.0, inf], &[2.0, inf]), 0.0);
        // p underflows, and so would e^{−d} overflow
        approx::assert_relative_eq!(
            divergence(&[0.0_f32, -100.0], &[0.0, 0.0]),
            core::f32::consts::LN_2,
            max_relative = 1e-6
        );
        assert!(divergence(&[0.0, f64::NAN], &[0.0, 0.0]).is_nan());
    }
}
