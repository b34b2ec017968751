//! The error of a result with respect to the textbook version; the limit of a formula is in its case.
//!
//! Errors are counted in units of `ε · max(1, |want|)`, ε the spacing of the type at 1: the random inputs are of order
//! 1, and where a sum cancels, its error is that of its terms, not of the small result. 0 means equal.

use approx::relative_eq;

use crate::generate::Number;

/// What is compared with the textbook in `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The formula in `f64`.
    F64,
    /// The formula in `f32`, on inputs that are exact in both.
    F32,
}

impl Basis {
    /// The basis of a number type.
    pub fn of<R: Number>() -> Self {
        if R::NAME == "f32" {
            Self::F32
        } else {
            Self::F64
        }
    }

    fn epsilon(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON,
            Self::F32 => f64::from(f32::EPSILON),
        }
    }
}

/// No entry may be this many times the largest error seen on the fixed seeds.
pub const SLACK: f64 = 16.0;

/// Whether the error is at most this many units; NaN agrees with NaN only, an infinity with itself.
pub fn is_close(basis: Basis, got: f64, want: f64, units: f64) -> bool {
    // both bounds at once are `ε · max(1, |want|)`
    let epsilon = units * basis.epsilon();
    (got.is_nan() && want.is_nan()) || relative_eq!(got, want, epsilon = epsilon, max_relative = epsilon)
}

/// The error in units; NaN agrees with NaN only, an infinity with itself.
pub fn units(basis: Basis, got: f64, want: f64) -> f64 {
    if got == want || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    let error = (got - want).abs() / (basis.epsilon() * want.abs().max(1.0));
    if error.is_nan() {
        f64::INFINITY
    } else {
        error
    }
}

fn ulps(basis: Basis, got: f64, want: f64) -> i64 {
    // bit patterns of one sign are ordered like the numbers
    fn place(bits: i64, sign: i64) -> i64 {
        if bits < 0 {
            sign.wrapping_sub(bits)
        } else {
            bits
        }
    }
    match basis {
        Basis::F64 => place(got.to_bits() as i64, i64::MIN).wrapping_sub(place(want.to_bits() as i64, i64::MIN)),
        Basis::F32 => {
            let bits = |x: f64| place(i64::from((x as f32).to_bits() as i32), i64::from(i32::MIN));
            bits(got) - bits(want)
        }
    }
}

/// Panics unless every number is off by at most this many units.
#[track_caller]
#[allow(clippy::panic, reason = "an assertion")]
pub fn assert_close(name: &str, allowed: f64, basis: Basis, got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{name}: number of results");
    for (index, (&got, &want)) in got.iter().zip(want).enumerate() {
        if !is_close(basis, got, want, allowed) {
            let (error, ulps) = (units(basis, got, want), ulps(basis, got, want));
            panic!("{name} {basis:?} [{index}]: got {got:e}, want {want:e}: {error:.2} units ({ulps} ulps), {allowed} allowed");
        }
    }
}

/// Panics unless both have the same bits; NaN is NaN.
#[track_caller]
#[allow(clippy::panic, reason = "an assertion")]
pub fn assert_bits<R: Number>(what: &str, got: &[R], want: &[R]) {
    assert_eq!(got.len(), want.len(), "{what}: number of results");
    for (index, (&got, &want)) in got.iter().zip(want).enumerate() {
        if got.bits() != want.bits() {
            let ulps = ulps(Basis::of::<R>(), got.widen(), want.widen());
            panic!("{what} {} [{index}]: got {got:?}, want {want:?}: {ulps} ulps apart", R::NAME);
        }
    }
}
