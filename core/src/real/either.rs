//! A number whose type is chosen at run time (feature `small`): one compiled copy of a formula serves `f32` and `f64`.
//!
//! It is held as an `f64`. As an `f32`, every result is rounded to one: for `+ − × ÷ sqrt` that is the same bits as the operation in
//! `f32`, because 53 digits are at least twice 24 and two more (Figueroa 1995), subnormal results included. `exp` and `ln` are called
//! in the type that was chosen.

use core::{
    cmp::Ordering,
    fmt,
    num::{FpCategory, ParseFloatError},
    ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, RemAssign, Sub, SubAssign},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use num_traits::{float::FloatCore, Num, NumCast, One, ToPrimitive, Zero};

use super::{Real, Sealed};
use crate::{math, policy::Logit};

/// `f32` or `f64`, as [`Either::choose`] said last. For programs of one thread, such as a WebAssembly module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(transparent)]
pub struct Either(f64);

/// Whether numbers are `f32` now.
static SINGLE: AtomicBool = AtomicBool::new(false);

impl Either {
    /// From now on numbers are `f32`, or `f64`; gives what they were before. Numbers made before are not to be used after.
    pub fn choose(single: bool) -> bool {
        let before = Self::is_single();
        SINGLE.store(single, Relaxed);
        before
    }

    /// Whether numbers are `f32` now.
    #[inline(always)]
    pub fn is_single() -> bool {
        SINGLE.load(Relaxed)
    }
}

/// Out of line: in a module that has to be small there are some thousand of these.
#[inline(never)]
fn round(x: f64) -> Either {
    Either(if Either::is_single() { (x as f32).into() } else { x })
}

/// One of two constants.
fn either(single: f32, double: f64) -> Either {
    Either(if Either::is_single() { single.into() } else { double })
}

macro_rules! operators {
    ($($trait:ident $method:ident, $assign:ident $assign_method:ident, $operator:tt;)*) => {$(
        impl $trait for Either {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                round(self.0 $operator other.0)
            }
        }
        impl $assign for Either {
            #[inline(always)]
            fn $assign_method(&mut self, other: Self) {
                *self = *self $operator other;
            }
        }
    )*};
}

operators! {
    Add add, AddAssign add_assign, +;
    Sub sub, SubAssign sub_assign, -;
    Mul mul, MulAssign mul_assign, *;
    Div div, DivAssign div_assign, /;
    Rem rem, RemAssign rem_assign, %;
}

impl Neg for Either {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl PartialOrd for Either {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.0.partial_cmp(&other.0)
    }
    // one comparison each, rather than the two or three of an ordering
    #[inline(always)]
    fn lt(&self, other: &Self) -> bool {
        self.0 < other.0
    }
    #[inline(always)]
    fn le(&self, other: &Self) -> bool {
        self.0 <= other.0
    }
    #[inline(always)]
    fn gt(&self, other: &Self) -> bool {
        self.0 > other.0
    }
    #[inline(always)]
    fn ge(&self, other: &Self) -> bool {
        self.0 >= other.0
    }
}

impl fmt::Display for Either {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if Self::is_single() {
            fmt::Display::fmt(&(self.0 as f32), f)
        } else {
            fmt::Display::fmt(&self.0, f)
        }
    }
}

impl Zero for Either {
    #[inline(always)]
    fn zero() -> Self {
        Self(0.0)
    }
    #[inline(always)]
    fn is_zero(&self) -> bool {
        self.0 == 0.0
    }
}

impl One for Either {
    #[inline(always)]
    fn one() -> Self {
        Self(1.0)
    }
}

impl Num for Either {
    type FromStrRadixErr = ParseFloatError;
    /// Decimal numbers, whatever the radix: the others are not for this type.
    fn from_str_radix(text: &str, _radix: u32) -> Result<Self, ParseFloatError> {
        if Self::is_single() {
            text.parse::<f32>().map(|x| Self(x.into()))
        } else {
            text.parse().map(Self)
        }
    }
}

impl ToPrimitive for Either {
    #[inline(always)]
    fn to_i64(&self) -> Option<i64> {
        self.0.to_i64()
    }
    #[inline(always)]
    fn to_u64(&self) -> Option<u64> {
        self.0.to_u64()
    }
    #[inline(always)]
    fn to_f64(&self) -> Option<f64> {
        Some(self.0)
    }
}

impl NumCast for Either {
    #[inline(always)]
    fn from<T: ToPrimitive>(x: T) -> Option<Self> {
        x.to_f64().map(Self::narrow)
    }
}

impl FloatCore for Either {
    #[inline(always)]
    fn infinity() -> Self {
        Self(f64::INFINITY)
    }
    #[inline(always)]
    fn neg_infinity() -> Self {
        Self(f64::NEG_INFINITY)
    }
    #[inline(always)]
    fn nan() -> Self {
        Self(f64::NAN)
    }
    #[inline(always)]
    fn neg_zero() -> Self {
        Self(-0.0)
    }
    fn min_value() -> Self {
        either(f32::MIN, f64::MIN)
    }
    fn min_positive_value() -> Self {
        either(f32::MIN_POSITIVE, f64::MIN_POSITIVE)
    }
    fn epsilon() -> Self {
        either(f32::EPSILON, f64::EPSILON)
    }
    fn max_value() -> Self {
        either(f32::MAX, f64::MAX)
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.0.is_nan()
    }
    #[inline(always)]
    fn is_infinite(self) -> bool {
        self.0.is_infinite()
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.0.is_finite()
    }
    fn classify(self) -> FpCategory {
        if Self::is_single() {
            (self.0 as f32).classify()
        } else {
            self.0.classify()
        }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.abs())
    }
    #[inline(always)]
    fn is_sign_positive(self) -> bool {
        self.0.is_sign_positive()
    }
    #[inline(always)]
    fn is_sign_negative(self) -> bool {
        self.0.is_sign_negative()
    }
    fn to_degrees(self) -> Self {
        if Self::is_single() {
            Self(FloatCore::to_degrees(self.0 as f32).into())
        } else {
            Self(FloatCore::to_degrees(self.0))
        }
    }
    fn to_radians(self) -> Self {
        if Self::is_single() {
            Self(FloatCore::to_radians(self.0 as f32).into())
        } else {
            Self(FloatCore::to_radians(self.0))
        }
    }
    fn integer_decode(self) -> (u64, i16, i8) {
        if Self::is_single() {
            FloatCore::integer_decode(self.0 as f32)
        } else {
            FloatCore::integer_decode(self.0)
        }
    }
}

impl Sealed for Either {}

/// Without rounding: for what is of the chosen type already.
impl From<f64> for Either {
    #[inline(always)]
    fn from(x: f64) -> Self {
        Self(x)
    }
}

impl Real for Either {
    const COMPACT: bool = cfg!(compact);
    #[inline(always)]
    fn narrow(x: f64) -> Self {
        round(x)
    }
    #[inline(always)]
    fn widen(self) -> f64 {
        self.0
    }
    #[inline(never)]
    fn own_exp(self) -> Self {
        Self(if Self::is_single() { (self.0 as f32).own_exp().into() } else { self.0.own_exp() })
    }
    #[inline(never)]
    fn near() -> Self {
        either(math::NEAR_F32, math::NEAR_F64)
    }
    #[inline(never)]
    fn own_exp_near(self) -> Self {
        Self(if Self::is_single() { math::exp_near_f32(self.0 as f32).into() } else { math::exp_near_f64(self.0) })
    }
    #[inline(never)]
    fn own_ln(self) -> Self {
        Self(if Self::is_single() { (self.0 as f32).own_ln().into() } else { self.0.own_ln() })
    }
    #[inline(never)]
    fn own_sqrt(self) -> Self {
        round(libm::sqrt(self.0))
    }
}

impl Logit for Either {
    type Compute = Self;
    #[inline(always)]
    fn load(self) -> Self {
        self
    }
}
