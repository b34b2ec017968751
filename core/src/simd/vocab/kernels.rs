//! The kernels, for any vector of sixteen.

use crate::{math::reduced_f32, policy::vocab_row::BLOCK, recursion::Lanes, reduce::LANES, simd::vocab::Ahead};

/// [`LANES`] numbers.
pub(super) trait Vector: Lanes<f32> {
    /// Asks for the memory at an address; one where there is nothing does no harm.
    fn fetch(address: *const u8);
    fn load(from: &[f32; LANES]) -> Self;
    /// `self` where it is less, else `other`.
    fn least(self, other: Self) -> Self;
    /// `self` where it is larger, else `other`.
    fn largest(self, other: Self) -> Self;
    /// `self · 2^n`, given what `reduced_f32` says of n.
    fn times_power(self, rounded: Self) -> Self;
    /// The sum of all, in the order of `reduce::tree`; below in the same order.
    fn sum(self) -> f32;
    fn least_of_all(self) -> f32;
    fn largest_of_all(self) -> f32;
}

/// The vectors of a block.
const VECTORS: usize = BLOCK / LANES;

/// A loop over them rather than an iterator: what the standard library calls is not compiled with these instructions.
#[inline(always)]
fn vector<V: Vector>(z: &[f32; BLOCK], k: usize) -> V {
    z[k * LANES..].first_chunk().map_or(V::all(0.0), V::load)
}

#[inline(always)]
pub(super) fn near<V: Vector>(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> [f32; 2] {
    let (max, mut sum, mut weighted) = (V::all(max), V::all(0.0), V::all(0.0));
    for k in 0..VECTORS {
        V::fetch(ahead.address.wrapping_add(k * ahead.step));
        let distance = vector::<V>(z, k) - max;
        let (mantissa, rounded) = reduced_f32(distance);
        let term = mantissa.times_power(rounded);
        sum = sum + term;
        weighted = weighted + term * distance;
    }
    [sum.sum(), weighted.sum()]
}

/// Vectors of which the least and the largest are kept side by side: a single one would wait for itself.
const CHAINS: usize = 4;

#[inline(always)]
pub(super) fn range<V: Vector>(z: &[f32; BLOCK]) -> [f32; 2] {
    let (mut least, mut largest) = ([V::all(f32::INFINITY); CHAINS], [V::all(f32::NEG_INFINITY); CHAINS]);
    for first in (0..VECTORS).step_by(CHAINS) {
        for chain in 0..CHAINS {
            let z = vector::<V>(z, first + chain);
            least[chain] = z.least(least[chain]);
            largest[chain] = z.largest(largest[chain]);
        }
    }
    let (mut least_of_all, mut largest_of_all) = (least[0], largest[0]);
    for chain in 1..CHAINS {
        least_of_all = least[chain].least(least_of_all);
        largest_of_all = largest[chain].largest(largest_of_all);
    }
    [least_of_all.least_of_all(), largest_of_all.largest_of_all()]
}
