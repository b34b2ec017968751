//! Sixteen numbers as four vectors of simd128, which a module has or has not: there is nothing to detect.

use core::{
    arch::wasm32::*,
    ops::{Add, Mul, Sub},
};

use super::kernels::Vector;
use crate::{math::NEAR_ORIGIN_F32, recursion::Lanes, reduce::LANES};

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

/// Joins the lanes as `reduce::tree` does: each with the one half as far again, until there is one.
macro_rules! joined {
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

impl Lanes<f32> for Four {
    #[inline(always)]
    fn all(x: f32) -> Self {
        Self([f32x4_splat(x); 4])
    }
}

impl Vector for Four {
    #[inline(always)]
    fn fetch(_: *const u8) {}
    #[inline(always)]
    fn load(z: &[f32; LANES]) -> Self {
        // compiled to plain loads
        let four = |k: usize| f32x4(z[k], z[k + 1], z[k + 2], z[k + 3]);
        Self([four(0), four(4), four(8), four(12)])
    }
    #[inline(always)]
    fn least(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([less(a[0], b[0]), less(a[1], b[1]), less(a[2], b[2]), less(a[3], b[3])])
    }
    #[inline(always)]
    fn largest(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        Self([larger(a[0], b[0]), larger(a[1], b[1]), larger(a[2], b[2]), larger(a[3], b[3])])
    }
    #[inline(always)]
    fn times_power(self, rounded: Self) -> Self {
        let power = |rounded| i32x4_shl(i32x4_sub(rounded, u32x4_splat(NEAR_ORIGIN_F32)), 23);
        self * Self([power(rounded.0[0]), power(rounded.0[1]), power(rounded.0[2]), power(rounded.0[3])])
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        joined!(self, f32x4_add)
    }
    #[inline(always)]
    fn least_of_all(self) -> f32 {
        joined!(self, less)
    }
    #[inline(always)]
    fn largest_of_all(self) -> f32 {
        joined!(self, larger)
    }
}
