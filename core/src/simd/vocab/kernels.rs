//! The kernels, generic over a vector of sixteen numbers.
#![allow(unsafe_code, reason = "making vectors")]

use super::{Ahead, BLOCK};
use crate::{math::reduced_f32, reduce::LANES, simd::Pack};

/// A vector of [`LANES`] numbers.
///
/// Only the constructors are unsafe: a vector proves that the CPU has its instructions, see [`Pack`].
pub(super) trait Vector: Pack<f32> {
    /// # Safety
    ///
    /// The CPU has the instructions of this type.
    unsafe fn load(from: &[f32; LANES]) -> Self;

    /// `x` in every lane.
    ///
    /// # Safety
    ///
    /// The CPU has the instructions of this type.
    unsafe fn broadcast(x: f32) -> Self;

    /// Prefetches the cache line at an address, which need not be valid.
    fn prefetch(address: *const u8);

    /// `self` where it is less, else `other`: `other` where one is NaN.
    fn min(self, other: Self) -> Self;

    /// `self` where it is larger, else `other`: `other` where one is NaN.
    fn max(self, other: Self) -> Self;

    /// `self · 2^n`, with `rounded` as [`reduced_f32`] returns it.
    fn times_power(self, rounded: Self) -> Self;

    /// The sum of the lanes, in the order of `reduce::tree`.
    fn sum_lanes(self) -> f32;

    /// The smallest lane, compared in that order.
    fn min_lane(self) -> f32;

    /// The largest lane, compared in that order.
    fn max_lane(self) -> f32;
}

/// Vectors per block.
const VECTORS: usize = BLOCK / LANES;

/// The `k`-th vector of a block. Called in an index loop: iterator adapters of the standard library are not compiled
/// with the instructions of `V`.
///
/// # Safety
///
/// The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn vector<V: Vector>(z: &[f32; BLOCK], k: usize) -> V {
    // SAFETY: as required of the caller.
    unsafe {
        match z[k * LANES..].first_chunk() {
            Some(lanes) => V::load(lanes),
            None => V::broadcast(0.0),
        }
    }
}

/// Σ e^{z−m} and Σ e^{z−m} (z − m).
///
/// # Safety
///
/// The CPU has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn near<V: Vector>(z: &[f32; BLOCK], max: f32, ahead: Ahead) -> [f32; 2] {
    // SAFETY: as required of the caller.
    let (max, zero) = unsafe { (V::broadcast(max), V::broadcast(0.0)) };
    let (mut sum, mut weighted) = (zero, zero);
    for k in 0..VECTORS {
        V::prefetch(ahead.address.wrapping_add(k * ahead.step));
        // SAFETY: as required of the caller.
        let distance = unsafe { vector::<V>(z, k) } - max;
        let (mantissa, rounded) = reduced_f32(distance);
        let term = mantissa.times_power(rounded);
        sum = sum + term;
        weighted = weighted + term * distance;
    }
    [sum.sum_lanes(), weighted.sum_lanes()]
}

/// Independent minima and maxima: a single one would wait for its own latency at every vector.
const CHAINS: usize = 4;

/// The smallest and the largest entry, ignoring NaN.
///
/// # Safety
///
/// The CPU has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn range<V: Vector>(z: &[f32; BLOCK]) -> [f32; 2] {
    // SAFETY: as required of the caller.
    let (highest, lowest) = unsafe { (V::broadcast(f32::INFINITY), V::broadcast(f32::NEG_INFINITY)) };
    let (mut min, mut max) = ([highest; CHAINS], [lowest; CHAINS]);
    for first in (0..VECTORS).step_by(CHAINS) {
        for chain in 0..CHAINS {
            // SAFETY: as required of the caller.
            let z = unsafe { vector::<V>(z, first + chain) };
            min[chain] = z.min(min[chain]);
            max[chain] = z.max(max[chain]);
        }
    }
    let (mut min_of_all, mut max_of_all) = (min[0], max[0]);
    for chain in 1..CHAINS {
        min_of_all = min[chain].min(min_of_all);
        max_of_all = max[chain].max(max_of_all);
    }
    [min_of_all.min_lane(), max_of_all.max_lane()]
}
