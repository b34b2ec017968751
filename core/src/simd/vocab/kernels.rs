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

#[inline(always)]
pub(super) fn range<V: Vector>(z: &[f32; BLOCK]) -> [f32; 2] {
    // twice as many lanes as elsewhere: even and odd vectors by themselves
    let (mut least, mut largest) = ([V::all(f32::INFINITY); 2], [V::all(f32::NEG_INFINITY); 2]);
    for k in (0..VECTORS).step_by(2) {
        let (even, odd) = (vector::<V>(z, k), vector::<V>(z, k + 1));
        least = [even.least(least[0]), odd.least(least[1])];
        largest = [even.largest(largest[0]), odd.largest(largest[1])];
    }
    [least[1].least(least[0]).least_of_all(), largest[1].largest(largest[0]).largest_of_all()]
}
