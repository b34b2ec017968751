//! One soft-max row, read once: the running maximum and the sums relative to it.
//!
//! A row is read in blocks that fit the innermost cache: the block's maximum first, then its terms in 16 lanes of the row's
//! own type, whose sums go to `f64`. Where the maximum grows, what was summed before is rescaled.

use num_traits::float::FloatCore;

use super::Logit;
use crate::{
    error::{check_config, check_len, check_positive, checked_size, Error, Result},
    layout::Batch,
    math::{exp, ln},
    real::Real,
    reduce::{tree, LANES},
};

/// Entries per block: few enough that `f32` lanes add only 32 terms each.
pub(crate) const BLOCK: usize = 32 * LANES;

/// `z = logit / τ`; `m` the largest z. −inf entries count 0 in every sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VocabRow<R> {
    /// m
    pub(crate) max: R,
    /// Σ e^{z−m}
    pub(crate) sum: f64,
    /// Σ e^{z−m} (z − m)
    pub(crate) weighted: f64,
    /// Σ e^{2(z−m)}
    pub(crate) squares: f64,
}

impl<R: Real> VocabRow<R> {
    /// ln Σ e^{z−m}; NaN for a row without any finite entry.
    #[inline]
    pub(crate) fn log_sum(&self) -> f64 {
        ln(self.sum)
    }

    /// H = ln Σ e^z − Σ p z.
    #[inline]
    pub(crate) fn entropy(&self) -> f64 {
        self.log_sum() - self.weighted / self.sum
    }

    /// ln p of an entry.
    #[inline]
    pub(crate) fn log_prob(&self, z: R) -> f64 {
        z.widen() - self.max.widen() - self.log_sum()
    }

    /// Σ p².
    #[inline]
    pub(crate) fn squared_probs(&self) -> f64 {
        self.squares / (self.sum * self.sum)
    }

    #[inline(always)]
    pub(crate) fn read<L: Logit<Compute = R>>(logits: &[L], inverse_temperature: R) -> Self {
        let mut row = Self { max: R::neg_infinity(), sum: 0.0, weighted: 0.0, squares: 0.0 };
        for block in logits.chunks(BLOCK) {
            let largest = block_max(block, inverse_temperature);
            if largest > row.max {
                row.raise_max(largest);
            }
            let max = row.max;
            let sums = block_sums(block, block, |logit, _| {
                let distance = logit.load() * inverse_temperature - max;
                let term = exp(distance);
                // −inf · 0 would be NaN; a NaN term is already in the first sum
                let weighted = if term > R::zero() { term * distance } else { R::zero() };
                [term, weighted, term * term]
            });
            // a block of nothing but −inf before any finite entry: −inf − (−inf) is NaN, yet it counts 0
            if max == R::neg_infinity() && block.iter().all(|logit| logit.load() == R::neg_infinity()) {
                continue;
            }
            row.sum += sums[0];
            row.weighted += sums[1];
            row.squares += sums[2];
        }
        // no entry at all has any probability
        if row.max == R::neg_infinity() {
            row.sum = f64::NAN;
        }
        row
    }

    fn raise_max(&mut self, largest: R) {
        if self.max > R::neg_infinity() {
            let drop = self.max.widen() - largest.widen();
            let factor = exp(drop);
            // a drop to 0 must not make 0 · −inf
            self.weighted = if factor > 0.0 { factor * (self.weighted + drop * self.sum) } else { 0.0 };
            self.sum *= factor;
            self.squares *= factor * factor;
        }
        self.max = largest;
    }
}

#[inline(always)]
fn block_max<L: Logit>(block: &[L], scale: L::Compute) -> L::Compute {
    let lowest = L::Compute::neg_infinity();
    let mut lanes = [lowest; LANES];
    let mut raise = |lane: usize, logit: L| {
        let z = logit.load() * scale;
        lanes[lane] = if z > lanes[lane] { z } else { lanes[lane] };
    };
    let chunks = block.chunks_exact(LANES);
    let tail = chunks.remainder();
    for chunk in chunks {
        for (lane, &logit) in chunk.iter().enumerate() {
            raise(lane, logit);
        }
    }
    for (lane, &logit) in tail.iter().enumerate() {
        raise(lane, logit);
    }
    lanes.into_iter().fold(lowest, |max, z| if z > max { z } else { max })
}

/// The sums of `N` terms over a block of two rows side by side, in lanes of the compute type, then as `f64`.
#[inline(always)]
pub(crate) fn block_sums<L: Copy, R: Real, const N: usize>(
    block: &[L],
    other: &[L],
    term: impl Fn(L, L) -> [R; N],
) -> [f64; N] {
    let mut lanes = [[R::zero(); LANES]; N];
    let mut add = |lane: usize, a: L, b: L| {
        for (lanes, term) in lanes.iter_mut().zip(term(a, b)) {
            lanes[lane] += term;
        }
    };
    let (chunks, others) = (block.chunks_exact(LANES), other.chunks_exact(LANES));
    let (tail, other_tail) = (chunks.remainder(), others.remainder());
    for (chunk, other) in chunks.zip(others) {
        for lane in 0..LANES {
            add(lane, chunk[lane], other[lane]);
        }
    }
    for (lane, (&a, &b)) in tail.iter().zip(other_tail).enumerate() {
        add(lane, a, b);
    }
    lanes.map(|lanes| tree(lanes).widen())
}

/// The checks that all functions of logits share; gives 1/τ.
pub(crate) fn check_logits<L: Logit>(
    batch: &Batch<'_>,
    what: &'static str,
    logits: &[L],
    vocab: usize,
    temperature: f64,
) -> Result<L::Compute> {
    check_config("vocab", "at least 1", vocab as f64, vocab > 0)?;
    check_len(what, logits, checked_size("tokens × vocab", batch.tokens(), vocab)?)?;
    check_positive("temperature", temperature)?;
    Ok(L::Compute::narrow(1.0 / temperature))
}

/// Refuses a kept token that is not in the vocabulary.
pub(crate) fn check_tokens(batch: &Batch<'_>, tokens: &[u32], vocab: usize) -> Result<()> {
    check_len("tokens", tokens, batch.tokens())?;
    for (index, (&id, &keep)) in tokens.iter().zip(batch.mask().as_slice()).enumerate() {
        if keep && id as usize >= vocab {
            return Err(Error::TokenId { index, id, vocab });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinite_entries_count_nothing_wherever_they_stand() {
        let inf = f64::NEG_INFINITY;
        let plain = VocabRow::read(&[0.0, 1.0, -2.0], 1.0);
        for holes in [vec![0, 3], vec![1, 700], vec![2, 1500]] {
            let mut logits = vec![inf; holes[1]];
            logits.extend([0.0, 1.0, -2.0]);
            logits.extend(vec![inf; holes[0] * 600]);
            let row = VocabRow::read(&logits, 1.0);
            assert!((row.entropy() - plain.entropy()).abs() < 1e-15);
            assert!((row.squared_probs() - plain.squared_probs()).abs() < 1e-15);
        }
        assert!(VocabRow::read(&[inf; 3], 1.0).entropy().is_nan());
        assert!(VocabRow::read(&[0.0, f64::NAN], 1.0).entropy().is_nan());
        assert!(VocabRow::read(&[0.0, f64::INFINITY], 1.0).entropy().is_nan());
    }

    #[test]
    fn a_rising_maximum_rescales() {
        // ascending logits raise the maximum in every block
        let logits: Vec<f64> = (0..3000).map(|i| f64::from(i) * 0.01).collect();
        let mut reversed = logits.clone();
        reversed.reverse();
        let (up, down) = (VocabRow::read(&logits, 1.0), VocabRow::read(&reversed, 1.0));
        assert!((up.entropy() / down.entropy() - 1.0).abs() < 1e-13);
        assert!((up.squared_probs() / down.squared_probs() - 1.0).abs() < 1e-13);
    }
}
