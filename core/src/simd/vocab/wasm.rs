//! Sixteen numbers as four vectors of simd128. There is nothing to detect: a module with these instructions is refused
//! by an engine without them, so the `unsafe` constructors ask nothing of the caller.
#![allow(unsafe_code, reason = "the constructors of a vector are unsafe functions")]

use core::{
    arch::wasm32::*,
    ops::{Add, Mul, Sub},
};

use super::kernels::Vector;
use crate::{math::NEAR_ORIGIN_F32, reduce::LANES, simd::Pack};

#[derive(Clone, Copy)]
pub(super) struct Four([v128; 4]);

macro_rules! operation {
    ($trait:ident, $method:ident, $instruction:ident) => {
        impl $trait for Four {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                let (a, b) = (self.0, other.0);
                Self([
                    $instruction(a[0], b[0]),
                    $instruction(a[1], b[1]),
                    $instruction(a[2], b[2]),
                    $instruction(a[3], b[3]),
                ])
            }
        }
    };
}
operation!(Add, add, f32x4_add);
operation!(Sub, sub, f32x4_sub);
operation!(Mul, mul, f32x4_mul);

/// Reduces sixteen lanes to one in the order of `reduce::tree`: lane `l` with `l + 8`, then `+ 4`, `+ 2`, `+ 1`.
macro_rules! reduced {
    ($vector:expr, $instruction:ident) => {{
        let [a, b, c, d] = $vector.0;
        let four = $instruction($instruction(b, d), $instruction(a, c));
        let two = $instruction(i32x4_shuffle::<2, 3, 0, 1>(four, four), four);
        f32x4_extract_lane::<0>($instruction(i32x4_shuffle::<1, 0, 3, 2>(two, two), two))
    }};
}

/// `a` where it is less, else `b`.
#[inline(always)]
fn less(a: v128, b: v128) -> v128 {
    f32x4_pmin(b, a)
}

/// `a` where it is larger, else `b`.
#[inline(always)]
fn larger(a: v128, b: v128) -> v128 {
    f32x4_pmax(b, a)
}

impl Pack<f32> for Four {
    #[inline(always)]
    fn splat(self, x: f32) -> Self {
        Self([f32x4_splat(x); 4])
    }
}

impl Vector for Four {
    #[inline(always)]
    fn prefetch(_: *const u8) {}
    #[inline(always)]
    unsafe fn load(z: &[f32; LANES]) -> Self {
        // compiled to plain loads
        let four = |k: usize| f32x4(z[k], z[k + 1], z[k + 2], z[k + 3]);
        Self([four(0), four(4), four(8), four(12)])
    }
    #[inline(always)]
    unsafe fn broadcast(x: f32) -> Self {
        Self([f32x4_splat(x); 4])
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([less(a[0], b[0]), less(a[1], b[1]), less(a[2], b[2]), less(a[3], b[3])])
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([larger(a[0], b[0]), larger(a[1], b[1]), larger(a[2], b[2]), larger(a[3], b[3])])
    }
    #[inline(always)]
    fn times_power(self, rounded: Self) -> Self {
        let power = |rounded| i32x4_shl(i32x4_sub(rounded, u32x4_splat(NEAR_ORIGIN_F32)), 23);
        self * Self([power(rounded.0[0]), power(rounded.0[1]), power(rounded.0[2]), power(rounded.0[3])])
    }
    #[inline(always)]
    fn sum_lanes(self) -> f32 {
        reduced!(self, f32x4_add)
    }
    #[inline(always)]
    fn min_lane(self) -> f32 {
        reduced!(self, less)
    }
    #[inline(always)]
    fn max_lane(self) -> f32 {
        reduced!(self, larger)
    }
}
