//! One soft-max row, read once: the running maximum and the sums relative to it.
//!
//! A row is read in blocks that fit the L1 cache: first the block's maximum, then its terms in 16 lanes of the row's
//! own type, whose sums are added in `f64`. When the maximum grows, the sums so far are rescaled (online soft-max).
//!
//! The term of the maximum itself, which is 1, is kept out of the sum: of a nearly certain token only the others tell
//! how certain it is, and beside a 1 they would be rounded away. The block that raises the maximum is summed a second
//! time without that term if it dominates the block; otherwise subtracting 1 loses at most a bit. That is one block of
//! a row in most cases, and at worst every block, which doubles the time: a maximum that grows from block to block by
//! more than the sum of its block.

use core::{array, mem::size_of};

use super::Logit;
use crate::{
    error::{check_config, check_count, check_len, check_positive, checked_size, Error, Result},
    layout::Batch,
    math::{exp, exp_near, ln},
    real::Real,
    reduce::{tree, CHUNK, LANES},
    simd::{
        multiversion,
        vocab::{Ahead, BLOCK},
    },
};

#[cfg(test)]
mod tests;

/// Prefetch distance in blocks.
const AHEAD: usize = 3;
/// Lanes of the running minimum and maximum; a divisor of [`BLOCK`].
const RANGE: usize = 32;
/// A row of at most this many entries is one short block, which has less padding. Changes no bit. Rows of at most
/// [`LANES`] entries have even shorter ones.
const SHORT: usize = if CHUNK > RANGE { CHUNK } else { RANGE };

/// `z = logit / τ`; `m` the largest z. −inf entries contribute 0 to every sum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VocabRow<R> {
    /// m
    pub(crate) max: R,
    /// Every `z − m` is at least `R::NEAR`, so that [`exp_near`] may be used; it gives the same bits as [`exp`].
    pub(crate) near: bool,
    /// Σ e^{z−m} without one entry whose z is m: the odds against that entry
    pub(crate) rest: f64,
    /// Σ e^{z−m} = 1 + rest
    pub(crate) sum: f64,
    /// Σ e^{z−m} (z − m)
    pub(crate) weighted: f64,
    /// Σ e^{2(z−m)}, if requested
    pub(crate) squares: f64,
}

impl<R: Real> VocabRow<R> {
    /// ln Σ e^{z−m}, accurate also where it is close to 0; NaN for a row without any finite entry.
    pub(crate) fn log_sum(&self) -> f64 {
        // what rounding took from 1 + rest; both differences are exact
        let lost = self.rest - (self.sum - 1.0);
        ln(self.sum) + lost / self.sum
    }

    /// H = ln Σ e^z − Σ p z.
    #[inline(always)]
    pub(crate) fn entropy(&self) -> f64 {
        self.log_prob_and_entropy(self.max)[1]
    }

    /// ln p of an entry.
    #[inline(always)]
    pub(crate) fn log_prob(&self, z: R) -> f64 {
        self.log_prob_and_entropy(z)[0]
    }

    /// Both by one logarithm.
    #[inline(always)]
    pub(crate) fn log_prob_and_entropy(&self, z: R) -> [f64; 2] {
        let log_sum = self.log_sum();
        [z.widen() - self.max.widen() - log_sum, log_sum - self.weighted / self.sum]
    }

    /// Σ p².
    pub(crate) fn squared_probs(&self) -> f64 {
        self.squares / (self.sum * self.sum)
    }

    #[inline(always)]
    pub(crate) fn read<L: Logit<Compute = R>>(logits: &[L], inverse_temperature: R) -> Self {
        Self::read_terms::<L, 2>(logits, inverse_temperature)
    }

    /// Like [`Self::read`], with the sum of the squares.
    #[inline(always)]
    pub(crate) fn read_squares<L: Logit<Compute = R>>(logits: &[L], inverse_temperature: R) -> Self {
        Self::read_terms::<L, 3>(logits, inverse_temperature)
    }

    #[inline(always)]
    fn read_terms<L: Logit<Compute = R>, const N: usize>(logits: &[L], scale: R) -> Self {
        if logits.len() <= SHORT {
            return read_short(logits, scale);
        }
        Self::read_blocks::<L, N, BLOCK>(logits, scale)
    }

    /// Blocks of `W` entries; `W` changes the bits of longer rows.
    #[inline(always)]
    fn read_blocks<L: Logit<Compute = R>, const N: usize, const W: usize>(logits: &[L], scale: R) -> Self {
        let mut row = Self { max: R::neg_infinity(), near: false, rest: 0.0, sum: 0.0, weighted: 0.0, squares: 0.0 };
        let mut least_of_all = R::infinity();
        let mut block = Block::<R, W>::new();
        for start in (0..logits.len()).step_by(W) {
            let ahead = &logits[start..];
            let logits = &ahead[..ahead.len().min(W)];
            // with τ = 1 a whole block is used in place, without a copy
            let in_place = L::as_computed(logits).filter(|_| scale == R::one()).and_then(|z| z.try_into().ok());
            if in_place.is_none() {
                block.load(logits, scale);
            }
            let z = in_place.unwrap_or_else(|| block.all());
            let (least, largest) = range(z);
            let raises = largest > row.max;
            if raises {
                row.raise_max(largest);
            }
            least_of_all = if least < least_of_all { least } else { least_of_all };
            let max = row.max;
            let near = least - max >= R::NEAR;
            let ahead =
                Ahead { address: ahead.as_ptr().wrapping_add(AHEAD * BLOCK).cast(), step: LANES * size_of::<L>() };
            let whole = z.as_slice().try_into().ok().filter(|_| near && logits.len() == BLOCK && N == 2);
            let by_hand = whole.and_then(|z| R::near_sums(z, max, ahead));
            let mut below = None;
            let sums: [f64; N] = match by_hand {
                Some(sums) => array::from_fn(|n| sums[n].widen()),
                None if W <= SHORT => {
                    // the rest as well: reading a short row costs less than calling a function that reads it again
                    let block = [(z, logits.len())];
                    let sums: [f64; 4] = match near {
                        true => block_sums(block, &Rest(max, Near(max))),
                        false => block_sums(block, &Rest(max, Far(max))),
                    };
                    below = Some(sums[3]);
                    array::from_fn(|n| sums[n])
                }
                None if near => block_sums([(z, logits.len())], &Near(max)),
                None => block_sums([(z, logits.len())], &Far(max)),
            };
            // only −inf so far: −inf − (−inf) is NaN, but such a block must count 0
            if max == R::neg_infinity() && logits.iter().all(|logit| logit.load() == R::neg_infinity()) {
                continue;
            }
            row.rest += match sums[0] {
                // two entries equal to the maximum would make 2
                sum if raises && sum < 2.0 => below.unwrap_or_else(|| sum_below(z, logits.len(), max)),
                sum if raises => sum - 1.0,
                sum => sum,
            };
            row.weighted += sums[1];
            row.squares += sums.get(2).copied().unwrap_or(0.0);
        }
        row.near = least_of_all - row.max >= R::NEAR;
        // no finite entry: there is no distribution
        if row.max == R::neg_infinity() {
            row.rest = f64::NAN;
        }
        row.sum = 1.0 + row.rest;
        row
    }

    fn raise_max(&mut self, largest: R) {
        if self.max > R::neg_infinity() {
            let drop = self.max.widen() - largest.widen();
            let factor = exp(drop);
            let sum = 1.0 + self.rest;
            // avoids 0 · −inf where the factor underflows
            self.weighted = if factor > 0.0 { factor * (self.weighted + drop * sum) } else { 0.0 };
            self.rest = factor * sum;
            self.squares *= factor * factor;
        }
        self.max = largest;
    }
}

/// A row of at most [`SHORT`] entries, with all sums.
#[inline(never)] // once instead of in every kernel
#[multiversion(avx512)]
fn read_short<L: Logit>(logits: &[L], scale: L::Compute) -> VocabRow<L::Compute> {
    match logits.len() <= LANES {
        true => VocabRow::read_blocks::<L, 3, LANES>(logits, scale),
        false => VocabRow::read_blocks::<L, 3, SHORT>(logits, scale),
    }
}

/// A buffer for one block as `z`: up to `W` entries, padded. Cache-line aligned.
#[repr(align(64))]
pub(crate) struct Block<R, const W: usize> {
    z: [R; W],
    len: usize,
}

impl<R: Real, const W: usize> Block<R, W> {
    pub(crate) fn new() -> Self {
        Self { z: [R::zero(); W], len: 0 }
    }

    /// `logits` has between 1 and `W` entries.
    #[inline(always)]
    pub(crate) fn load<L: Logit<Compute = R>>(&mut self, logits: &[L], scale: R) {
        for (z, logit) in self.z.iter_mut().zip(logits) {
            *z = logit.load() * scale;
        }
        self.len = logits.len().min(W);
        // padding with a repeated entry changes neither minimum nor maximum
        let first = self.z[0];
        self.z[self.len..].fill(first);
    }

    #[inline(always)]
    fn all(&self) -> &[R; W] {
        &self.z
    }

    /// The entries, and how many of them are not padding.
    #[inline(always)]
    pub(crate) fn view(&self) -> (&[R; W], usize) {
        (&self.z, self.len)
    }
}

/// The smallest and the largest z, ignoring NaN.
#[inline(always)]
fn range<R: Real, const W: usize>(z: &[R; W]) -> (R, R) {
    if let Some([least, largest]) = z.as_slice().try_into().ok().and_then(R::range) {
        return (least, largest);
    }
    let (mut least, mut largest) = ([R::infinity(); RANGE], [R::neg_infinity(); RANGE]);
    let width = W.min(RANGE);
    for z in z.chunks_exact(width) {
        for lane in 0..width {
            least[lane] = if z[lane] < least[lane] { z[lane] } else { least[lane] };
            largest[lane] = if z[lane] > largest[lane] { z[lane] } else { largest[lane] };
        }
    }
    let mut half = width / 2;
    while half > 0 {
        for lane in 0..half {
            least[lane] = if least[lane + half] < least[lane] { least[lane + half] } else { least[lane] };
            largest[lane] = if largest[lane + half] > largest[lane] { largest[lane + half] } else { largest[lane] };
        }
        half /= 2;
    }
    (least[0], largest[0])
}

/// `N` terms of the entries of `INS` rows side by side. A trait rather than a closure, because its method can be
/// `#[inline(always)]`.
pub(crate) trait Terms<R, const INS: usize, const N: usize> {
    fn of(&self, z: [R; INS]) -> [R; N];
}

/// The first `N` of `e^d`, `e^d d` and `e^{2d}`, with `d = z − m`.
struct Far<R>(R);

/// The same for a block in which every `d` is at least `R::NEAR`.
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
        let term = exp_near(distance);
        array::from_fn(|i| [term, term * distance, term * term][i])
    }
}

/// Three sums of a block, and the first one without the maximum.
struct Rest<R, T>(R, T);

impl<R: Real, T: Terms<R, 1, 3>> Terms<R, 1, 4> for Rest<R, T> {
    #[inline(always)]
    fn of(&self, [z]: [R; 1]) -> [R; 4] {
        let [term, weighted, square] = self.1.of([z]);
        [term, weighted, square, if z == self.0 { R::zero() } else { term }]
    }
}

/// `e^{z−m}`, and 0 for the maximum itself.
struct Below<R>(R);

impl<R: Real> Terms<R, 1, 1> for Below<R> {
    #[inline(always)]
    fn of(&self, [z]: [R; 1]) -> [R; 1] {
        let term = exp(z - self.0);
        [if z == self.0 { R::zero() } else { term }]
    }
}

/// Σ e^{z−m} of a block over the entries below the maximum.
#[inline(never)] // few blocks need it
#[multiversion]
fn sum_below<R: Real, const W: usize>(z: &[R; W], len: usize, max: R) -> f64 {
    let [sum] = block_sums([(z, len)], &Below(max));
    sum
}

/// Sums `N` terms over blocks of equal length side by side, in lanes of the compute type, and widens the sums to `f64`.
/// A block comes with the number of its entries that are not padding.
#[inline(always)]
pub(crate) fn block_sums<R: Real, const INS: usize, const N: usize, const W: usize>(
    blocks: [(&[R; W], usize); INS],
    of: &impl Terms<R, INS, N>,
) -> [f64; N] {
    let (mut lanes, mut terms) = ([[R::zero(); LANES]; N], [[R::zero(); CHUNK]; N]);
    let (len, width) = (blocks[0].1, W.min(CHUNK));
    for start in (0..len).step_by(width) {
        let z = blocks.map(|(z, _)| &z[start..start + width]);
        for i in 0..width {
            let term = of.of(array::from_fn(|b| z[b][i]));
            (0..N).for_each(|n| terms[n][i] = term[n]);
        }
        let live = width.min(len - start);
        for (lanes, terms) in lanes.iter_mut().zip(&mut terms) {
            let terms = &mut terms[..width];
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

/// The sums of a whole block by the portable code.
#[cfg(test)]
pub(crate) fn plain_sums(z: &[f32; BLOCK], max: f32) -> [f64; 2] {
    block_sums([(z, BLOCK)], &Near(max))
}

/// The checks that all functions of logits share; returns 1/τ.
pub(crate) fn check_logits<L: Logit>(
    batch: &Batch<'_>,
    what: &'static str,
    logits: &[L],
    vocab: usize,
    temperature: f64,
) -> Result<L::Compute> {
    check_vocab::<L::Compute>(batch, what, logits.len(), vocab, temperature)?;
    Ok(L::Compute::narrow(1.0 / temperature))
}

/// The checks of logits by their number, for crates that compute with them elsewhere.
#[doc(hidden)]
pub fn check_vocab<R: Real>(
    batch: &Batch<'_>,
    what: &'static str,
    logits: usize,
    vocab: usize,
    temperature: f64,
) -> Result<()> {
    check_config("vocab", "at least 1", vocab as f64, vocab > 0)?;
    check_count(what, logits, checked_size("tokens × vocab", batch.tokens(), vocab)?)?;
    check_positive::<R>("temperature", temperature)
}

/// Rejects a kept token that is not in the vocabulary.
#[doc(hidden)]
pub fn check_tokens(batch: &Batch<'_>, tokens: &[u32], vocab: usize) -> Result<()> {
    check_len("tokens", tokens, batch.tokens())?;
    for (index, (&id, &keep)) in tokens.iter().zip(batch.mask().as_slice()).enumerate() {
        if keep && id as usize >= vocab {
            return Err(Error::TokenId { index, id, vocab });
        }
    }
    Ok(())
}
