// Sums as pairs of f32, `hi + lo`, about 48 bits. The order is fixed, so a sum is the same on every run.

struct Pair {
    hi: f32,
    lo: f32,
}

// The same number, of which the compiler knows nothing: one NaN becomes another, which no sum is. Without it Mesa
// simplifies (a + b) − a to b, and the low half of every pair is 0.
fn opaque(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    return bitcast<f32>(select(bits, NAN_BITS, bits == 0x7fc51ab1u));
}

fn pair_add(a: Pair, b: Pair) -> Pair {
    let sum = opaque(a.hi + b.hi);
    let part = opaque(sum - a.hi);
    let error = (a.hi - (sum - part)) + (b.hi - part);
    let low = error + (a.lo + b.lo);
    let hi = opaque(sum + low);
    return Pair(hi, low - (hi - sum));
}

// As `pair_add`, without bringing the low half below the last digit of the high one: for sums of a few numbers.
fn pair_plus(a: Pair, x: f32) -> Pair {
    let sum = opaque(a.hi + x);
    let part = opaque(sum - a.hi);
    return Pair(sum, a.lo + ((a.hi - (sum - part)) + (x - part)));
}

fn pair_product(a: f32, b: f32) -> Pair {
    let product = opaque(a * b);
    let a_wide = a * 4097.0;
    let a_hi = a_wide - opaque(a_wide - a);
    let a_lo = a - a_hi;
    let b_wide = b * 4097.0;
    let b_hi = b_wide - opaque(b_wide - b);
    let b_lo = b - b_hi;
    return Pair(product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo);
}

// (hi + lo) / divisor
fn pair_over(a: Pair, divisor: f32) -> Pair {
    let quotient = opaque(a.hi / divisor);
    let back = pair_product(quotient, divisor);
    let rest = ((a.hi - back.hi) - back.lo) + a.lo;
    return pair_add(Pair(quotient, 0.0), Pair(rest / divisor, 0.0));
}
