//! One soft-max row, read once: the running maximum and the sums relative to it.
//!
//! A row is read in blocks that fit the innermost cache: the block's maximum first, then its terms in 16 lanes of the row's
//! own type, whose sums go to `f64`. Where the maximum grows, what was summed before is rescaled.

use core::{array, mem::size_of};

use super::Logit;
use crate::{
    error::{check_config, check_len, check_positive, checked_size, refused, Error, Result},
    layout::Batch,
    math::{exp, ln},
    real::Real,
    reduce::{tree, CHUNK, LANES},
    simd::vocab::Ahead,
};

/// Entries per block: few enough that `f32` lanes add only 32 terms each.
pub(crate) const BLOCK: usize = 32 * LANES;
/// Blocks between what is computed and what is fetched.
const AHEAD: usize = 3;
/// Lanes of the least and the largest entry; a divisor of [`BLOCK`].
const RANGE: usize = 32;

/// `z = logit / τ`; `m` the largest z. −inf entries count 0 in every sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VocabRow<R> {
    /// m
    pub(crate) max: R,
    /// No entry is so far from m that `e^{z−m}` needs care; the careful way has the same bits.
    pub(crate) near: bool,
    /// Σ e^{z−m}
    pub(crate) sum: f64,
    /// Σ e^{z−m} (z − m)
    pub(crate) weighted: f64,
    /// Σ e^{2(z−m)}, if it was asked for
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
        if R::COMPACT {
            // one copy for both: what is not asked for changes nothing
            return Self::read_squares(logits, inverse_temperature);
        }
        Self::read_terms::<L, 2>(logits, inverse_temperature)
    }

    /// As [`Self::read`], with the sum of the squares.
    #[inline(always)]
    pub(crate) fn read_squares<L: Logit<Compute = R>>(logits: &[L], inverse_temperature: R) -> Self {
        Self::read_terms::<L, 3>(logits, inverse_temperature)
    }

    #[cfg_attr(not(compact), inline(always))]
    #[cfg_attr(compact, inline(never))]
    fn read_terms<L: Logit<Compute = R>, const N: usize>(logits: &[L], scale: R) -> Self {
        let mut row = Self { max: R::neg_infinity(), near: false, sum: 0.0, weighted: 0.0, squares: 0.0 };
        let mut least_of_all = R::infinity();
        let mut block = Block::new();
        for start in (0..logits.len()).step_by(BLOCK) {
            let ahead = &logits[start..];
            let logits = &ahead[..ahead.len().min(BLOCK)];
            // dividing by 1 changes nothing, so that a whole block may be read where it is
            let in_place = L::as_computed(logits).filter(|_| scale == R::one()).and_then(|z| z.try_into().ok());
            if in_place.is_none() {
                block.load(logits, scale);
            }
            let z = in_place.unwrap_or_else(|| block.all());
            let (least, largest) = range(z);
            if largest > row.max {
                row.raise_max(largest);
            }
            least_of_all = if least < least_of_all { least } else { least_of_all };
            let max = row.max;
            let near = !R::COMPACT && least - max >= R::near();
            let ahead =
                Ahead { address: ahead.as_ptr().wrapping_add(AHEAD * BLOCK).cast(), step: LANES * size_of::<L>() };
            let by_hand = if near && logits.len() == BLOCK && N == 2 { R::near_sums(z, max, ahead) } else { None };
            let sums: [f64; N] = match by_hand {
                Some(sums) => array::from_fn(|n| sums[n].widen()),
                None if near => block_sums([(z, logits.len())], &Near(max)),
                None => block_sums([(z, logits.len())], &Far(max)),
            };
            // a block of nothing but −inf before any finite entry: −inf − (−inf) is NaN, yet it counts 0
            if max == R::neg_infinity() && logits.iter().all(|logit| logit.load() == R::neg_infinity()) {
                continue;
            }
            row.sum += sums[0];
            row.weighted += sums[1];
            row.squares += sums.get(2).copied().unwrap_or(0.0);
        }
        row.near = !R::COMPACT && least_of_all - row.max >= R::near();
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

/// Room for a block of a row as `z`: up to [`BLOCK`] entries, the rest filled up. Begins where a line of the cache does.
#[repr(align(64))]
pub(crate) struct Block<R> {
    z: [R; BLOCK],
    len: usize,
}

impl<R: Real> Block<R> {
    pub(crate) fn new() -> Self {
        Self { z: [R::zero(); BLOCK], len: 0 }
    }

    /// `logits` are at least one and at most a block.
    #[cfg_attr(not(compact), inline(always))]
    #[cfg_attr(compact, inline(never))]
    pub(crate) fn load<L: Logit<Compute = R>>(&mut self, logits: &[L], scale: R) {
        for (z, logit) in self.z.iter_mut().zip(logits) {
            *z = logit.load() * scale;
        }
        self.len = logits.len().min(BLOCK);
        // a repeated entry changes neither the least nor the largest
        let first = self.z[0];
        self.z[self.len..].fill(first);
    }

    #[inline(always)]
    fn all(&self) -> &[R; BLOCK] {
        &self.z
    }

    /// The entries, and how many of them count.
    #[inline(always)]
    pub(crate) fn view(&self) -> (&[R; BLOCK], usize) {
        (&self.z, self.len)
    }
}

/// The least and the largest z; NaN is neither.
#[cfg_attr(not(compact), inline(always))]
#[cfg_attr(compact, inline(never))]
fn range<R: Real>(z: &[R; BLOCK]) -> (R, R) {
    if let Some([least, largest]) = R::range(z) {
        return (least, largest);
    }
    let (mut least, mut largest) = ([R::infinity(); RANGE], [R::neg_infinity(); RANGE]);
    for z in z.chunks_exact(RANGE) {
        for lane in 0..RANGE {
            least[lane] = if z[lane] < least[lane] { z[lane] } else { least[lane] };
            largest[lane] = if z[lane] > largest[lane] { z[lane] } else { largest[lane] };
        }
    }
    let mut half = RANGE / 2;
    while half > 0 {
        for lane in 0..half {
            least[lane] = if least[lane + half] < least[lane] { least[lane + half] } else { least[lane] };
            largest[lane] = if largest[lane + half] > largest[lane] { largest[lane + half] } else { largest[lane] };
        }
        half /= 2;
    }
    (least[0], largest[0])
}

/// `N` terms of the entries of `INS` rows side by side. A trait rather than a closure: it is inlined into every copy of a loop.
pub(crate) trait Terms<R, const INS: usize, const N: usize> {
    fn of(&self, z: [R; INS]) -> [R; N];
}

/// The first `N` of `e^d`, `e^d d` and `e^{2d}`, with `d = z − m`.
struct Far<R>(R);

/// The same where no entry of the block is so far from the largest that `e^d` needs care.
struct Near<R>(R);

impl<R: Real, const N: usize> Terms<R, 1, N> for Far<R> {
    #[inline(always)]
    fn of(&self, [z]: [R; 1]) -> [R; N] {
        let distance = z - self.0;
        let term = exp(distance);
        // −inf · 0 would be NaN; a NaN term is already in the first sum
        let weighted = if term > R::zero() { term * distance } else { R::zero() };
        array::from_fn(|i| [term, weighted, term * term][i])
    }
}

impl<R: Real, const N: usize> Terms<R, 1, N> for Near<R> {
    #[inline(always)]
    fn of(&self, [z]: [R; 1]) -> [R; N] {
        let distance = z - self.0;
        let term = distance.own_exp_near();
        array::from_fn(|i| [term, term * distance, term * term][i])
    }
}

/// The sums of `N` terms over blocks of equal length side by side, in lanes of the compute type, then as `f64`. A block comes with
/// the number of its entries that count.
#[cfg_attr(not(compact), inline(always))]
#[cfg_attr(compact, inline(never))]
pub(crate) fn block_sums<R: Real, const INS: usize, const N: usize>(
    blocks: [(&[R; BLOCK], usize); INS],
    of: &impl Terms<R, INS, N>,
) -> [f64; N] {
    #[cfg(compact)]
    if R::COMPACT {
        let mut sums = [0.0; N];
        small::block_sums(&blocks, &mut sums, &|slot: &mut Slot<R>| {
            if let Some(&z) = slot.inputs.first_chunk() {
                slot.outputs.iter_mut().zip(of.of(z)).for_each(|(to, term)| *to = term);
            }
        });
        return sums;
    }
    let (mut lanes, mut terms) = ([[R::zero(); LANES]; N], [[R::zero(); CHUNK]; N]);
    let len = blocks[0].1;
    for start in (0..len).step_by(CHUNK) {
        let z = blocks.map(|(z, _)| &z[start..start + CHUNK]);
        for i in 0..CHUNK {
            let term = of.of(array::from_fn(|b| z[b][i]));
            (0..N).for_each(|n| terms[n][i] = term[n]);
        }
        let live = CHUNK.min(len - start);
        for (lanes, terms) in lanes.iter_mut().zip(&mut terms) {
            // +0 changes no lane: none is ever −0
            terms[live..].fill(R::zero());
            let mut sums = *lanes;
            for terms in terms.chunks_exact(LANES) {
                (0..LANES).for_each(|lane| sums[lane] += terms[lane]);
            }
            *lanes = sums;
        }
    }
    lanes.map(|lanes| tree(lanes).widen())
}

/// The same sums in the same order by the engine that exists once.
#[cfg(compact)]
mod small {
    use super::{tree, Real, BLOCK, LANES};
    use crate::reduce::small::{Slot, Token};

    /// The most terms.
    const MOST: usize = 3;

    #[inline(never)]
    pub(super) fn block_sums<R: Real>(blocks: &[(&[R; BLOCK], usize)], sums: &mut [f64], token: &dyn Token<R>) {
        let (mut slot, mut lanes) = (Slot::new(), [[R::zero(); LANES]; MOST]);
        for i in 0..blocks[0].1 {
            for (to, (z, _)) in slot.inputs.iter_mut().zip(blocks) {
                *to = z[i];
            }
            token.at(&mut slot);
            for (lanes, term) in lanes.iter_mut().zip(slot.outputs) {
                lanes[i % LANES] += term;
            }
        }
        for (sum, lanes) in sums.iter_mut().zip(lanes) {
            *sum = tree(lanes).widen();
        }
    }
}
#[cfg(compact)]
use crate::reduce::small::Slot;

/// The sums of a whole block by the form that every machine has.
#[cfg(test)]
pub(crate) fn plain_sums(z: &[f32; BLOCK], max: f32) -> [f64; 2] {
    block_sums([(z, BLOCK)], &Near(max))
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
            return refused(Error::TokenId { index, id, vocab });
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
        let plain = VocabRow::read_squares(&[0.0, 1.0, -2.0], 1.0);
        for holes in [vec![0, 3], vec![1, 700], vec![2, 1500]] {
            let mut logits = vec![inf; holes[1]];
            logits.extend([0.0, 1.0, -2.0]);
            logits.extend(vec![inf; holes[0] * 600]);
            let row = VocabRow::read_squares(&logits, 1.0);
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
        let (up, down) = (VocabRow::read_squares(&logits, 1.0), VocabRow::read_squares(&reversed, 1.0));
        assert!((up.entropy() / down.entropy() - 1.0).abs() < 1e-13);
        assert!((up.squared_probs() / down.squared_probs() - 1.0).abs() < 1e-13);
    }
}
