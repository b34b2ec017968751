//! Sums as integers: a number of `f64` is a mantissa at a bit position, and is added to limbs of 32 bits each.
//!
//! A sum is `LEN − 3` limbs of payload, lowest first, and the numbers of +inf, −inf and NaN that were added. The limbs
//! of two sums add up limb by limb, in any order, because integers do. [`carry`] makes the form unique: every limb but
//! the last payload limb is in `[0, 2³²)`, so that equal sums have equal limbs.

/// Payload bits of a limb. The other half of an `i64` is room for 2³¹ additions before the next carry.
const BITS: usize = 32;
/// The numbers of +inf, −inf and NaN at the end of a sum.
const SPECIALS: usize = 3;
/// Limbs of a sum of numbers: bits 2⁻¹⁰⁷⁴ to 2¹⁰²³, and one limb for what carries beyond.
pub(super) const SUM: usize = 67 + SPECIALS;
/// Limbs of a sum of products of two numbers: bits 2⁻²¹⁴⁸ to 2²⁰⁴⁷, and one limb more.
pub(super) const PRODUCTS: usize = 133 + SPECIALS;
/// The bit position of 2⁻¹⁰⁷⁴ in a sum of products.
pub(super) const OFFSET: usize = 1074;

/// The payload of a sum.
pub(super) fn payload(sum: &[i64]) -> &[i64] {
    &sum[..sum.len() - SPECIALS]
}

/// What a sum with infinities or NaN is; `None` for one of finite numbers.
pub(super) fn special(sum: &[i64]) -> Option<f64> {
    match sum[sum.len() - SPECIALS..] {
        [0, 0, 0] => None,
        [_, 0, 0] => Some(f64::INFINITY),
        [0, _, 0] => Some(f64::NEG_INFINITY),
        _ => Some(f64::NAN),
    }
}

fn add_special(sum: &mut [i64], x: f64) {
    let first = sum.len() - SPECIALS;
    let which = if x.is_nan() {
        2
    } else if x < 0.0 {
        1
    } else {
        0
    };
    sum[first + which] += 1;
}

/// Adds `±magnitude · 2^bit`.
#[inline]
fn add_integer(sum: &mut [i64], bit: usize, magnitude: u64, negative: bool) {
    let wide = u128::from(magnitude) << (bit % BITS);
    let sign = if negative { -1 } else { 1 };
    for (limb, part) in sum[bit / BITS..].iter_mut().zip([wide as u32, (wide >> 32) as u32, (wide >> 64) as u32]) {
        *limb += sign * i64::from(part);
    }
}

/// A finite number as `±mantissa · 2^(bit − 1074)`.
#[inline]
fn parts(x: f64) -> (usize, u64, bool) {
    let bits = x.to_bits();
    let field = (bits >> 52 & 0x7ff) as usize;
    let fraction = bits & ((1 << 52) - 1);
    // numbers below 2⁻¹⁰²² have no hidden bit and the exponent of the next ones
    let mantissa = if field == 0 { fraction } else { fraction | 1 << 52 };
    (field.max(1) - 1, mantissa, bits >> 63 == 1)
}

/// Adds a number so many times; `offset` is the bit position of 2⁻¹⁰⁷⁴.
#[inline]
pub(super) fn add(sum: &mut [i64], offset: usize, x: f64, times: u64) {
    if x.is_finite() {
        let (bit, mantissa, negative) = parts(x);
        add_wide(sum, bit + offset, u128::from(mantissa) * u128::from(times), negative);
    } else {
        add_special(sum, x);
    }
}

/// Adds a product so many times, without rounding it, to a sum of products.
#[inline]
pub(super) fn add_product(sum: &mut [i64], [x, y]: [f64; 2], times: u64) {
    if !(x.is_finite() && y.is_finite()) {
        return add_special(sum, x * y);
    }
    let ((bit_x, x, negative_x), (bit_y, y, negative_y)) = (parts(x), parts(y));
    let (product, bit, negative) = (u128::from(x) * u128::from(y), bit_x + bit_y, negative_x != negative_y);
    // 106 bits of a product leave room for 16 of the count
    let (mut bit, mut times) = (bit, times);
    while times > 0 {
        add_wide(sum, bit, product * u128::from(times & 0xffff), negative);
        (bit, times) = (bit + 16, times >> 16);
    }
}

/// Adds `±magnitude · 2^bit`.
#[inline]
fn add_wide(sum: &mut [i64], bit: usize, magnitude: u128, negative: bool) {
    add_integer(sum, bit, magnitude as u64, negative);
    if magnitude >> 64 > 0 {
        add_integer(sum, bit + 64, (magnitude >> 64) as u64, negative);
    }
}

/// Brings a sum into its unique form. Limbs must be within ±2⁶².
pub(super) fn carry(sum: &mut [i64]) {
    let last = sum.len() - SPECIALS - 1;
    let mut carried = 0;
    for limb in &mut sum[..last] {
        let total = *limb + carried;
        *limb = total & 0xffff_ffff;
        carried = total >> BITS;
    }
    sum[last] += carried;
}
