// exp and ln from + − × ÷ and bit operations. The built-in functions err by up to 61 ulp at large arguments, and their
// results for NaN, infinities and denormals differ between drivers: such values are detected by their bits before they
// are used as numbers.

const LOG2_E: f32 = 1.442695;
// 15 leading bits of ln 2: the product with any |n| < 2⁹ is exact.
const LN2_HI: f32 = 0.69314575;
const LN2_LO: f32 = 1.4286068e-6;

// e^x to about 1 ulp for −87.33 ≤ x ≤ 88.72; 0 below, the largest finite number above. `x` must not be NaN.
//
// n = round(x·log2 e), r = x − n·ln 2, e^x = 2ⁿ·e^r. 2ⁿ is applied as two factors, each a normal number.
fn own_exp(x: f32) -> f32 {
    if (x < -87.33) {
        return 0.0;
    }
    if (x > 88.72) {
        out_of_range = true;
        return 0x1.fffffep+127;
    }
    let n = round(x * LOG2_E);
    let head = x - n * LN2_HI;
    let tail = n * LN2_LO;
    let r = head - tail;
    let r2 = r * r;
    // minimax for (e^r − 1 − r) / r² on [−ln2/2, ln2/2], error relative to e^r < 2⁻²⁸
    let q = (0.49999994 + 0.16666521 * r) + r2 * ((0.041668266 + 0.008368681 * r) + r2 * 0.0013820777);
    let mantissa = 1.0 + (head + (r2 * q - tail));
    let exponent = i32(n);
    // an arithmetic shift rounds down, so both halves stay within [−63, 64]
    let first = exponent >> 1u;
    let second = exponent - first;
    return mantissa * bitcast<f32>(u32(first + 127) << 23u) * bitcast<f32>(u32(second + 127) << 23u);
}

// ln x to about 2 ulp. `x` must be positive, normal and finite.
//
// x = 2^k·m with m in [√½, √2), f = m − 1, s = f / (2 + f): ln x = k·ln 2 + f − (f²/2 − s·(f²/2 + R(s²))).
fn own_ln(x: f32) -> f32 {
    // moves √½ onto a power of two, so that the exponent field counts from there
    let shifted = bitcast<u32>(x) + (0x3f800000u - 0x3f3504f3u);
    let k = f32(i32(shifted >> 23u) - 127);
    let m = bitcast<f32>((shifted & 0x007fffffu) + 0x3f3504f3u);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    // minimax of (2·atanh(s) − 2s) / s³ in z on [0, (3 − 2√2)²], error relative to ln(1 + f) < 2⁻³⁰
    let r = z * (0.66666776 + z * (0.39977586 + z * 0.29870695));
    let half_square = 0.5 * f * f;
    return k * LN2_HI + (f - (half_square - (s * (half_square + r) + k * LN2_LO)));
}

// e^u − 1 − u to about 5 ulp. The terms cancel near 0, where the series is summed.
fn exp_remainder(u: f32) -> f32 {
    if (abs(u) < 1.0) {
        var series = 1.6059044e-10;
        series = series * u + 2.0876757e-9;
        series = series * u + 2.5052108e-8;
        series = series * u + 2.7557319e-7;
        series = series * u + 2.7557319e-6;
        series = series * u + 2.4801587e-5;
        series = series * u + 1.984127e-4;
        series = series * u + 1.3888889e-3;
        series = series * u + 8.333334e-3;
        series = series * u + 4.1666668e-2;
        series = series * u + 0.16666667;
        series = series * u + 0.5;
        return u * u * series;
    }
    return own_exp(u) - 1.0 - u;
}

// √x to about 1 ulp: one Newton step after the built-in root, whose error differs between drivers. `x` ≥ 0, finite.
fn own_sqrt(x: f32) -> f32 {
    if (x == 0.0) {
        return 0.0;
    }
    let root = sqrt(x);
    return 0.5 * (root + x / root);
}
