// NaN and infinities by their bits: drivers may fold comparisons with NaN, flush, or change it when it is loaded as a
// float. Columns are therefore arrays of u32, and a formula only ever sees finite numbers.

const SIGN_BIT: u32 = 0x80000000u;
const INFINITY_BITS: u32 = 0x7f800000u;
const NEGATIVE_INFINITY_BITS: u32 = 0xff800000u;
const NAN_BITS: u32 = 0x7fc00000u;
const LARGEST: f32 = 0x1.fffffep+127;

// Set by functions whose result exceeds the range of f32; they return LARGEST in its place.
var<private> out_of_range: bool;
// Set by a formula whose outputs are NaN for another reason than its token's inputs.
var<private> poisoned: bool;

// First word of a record: a kept input was not finite, or a result left the range.
const FLAG_SPECIAL: u32 = 1u;
const FLAG_RANGE: u32 = 2u;
// Second word: three bits per sum.
const FLAG_NAN: u32 = 1u;
const FLAG_POSITIVE_INFINITY: u32 = 2u;
const FLAG_NEGATIVE_INFINITY: u32 = 4u;
// Words before the sums.
const RECORD_FLAGS: u32 = 2u;

fn is_nan_bits(bits: u32) -> bool {
    return (bits & ~SIGN_BIT) > INFINITY_BITS;
}

fn is_special_bits(bits: u32) -> bool {
    return (bits & INFINITY_BITS) == INFINITY_BITS;
}

// The number with these bits; the largest finite one for an infinity, 0 for NaN.
fn finite(bits: u32) -> f32 {
    if (!is_special_bits(bits)) {
        return bitcast<f32>(bits);
    }
    if (is_nan_bits(bits)) {
        return 0.0;
    }
    return select(LARGEST, -LARGEST, (bits & SIGN_BIT) != 0u);
}

// The flags of a term that is not finite; 0 for a finite one.
fn term_flags(bits: u32) -> u32 {
    if (!is_special_bits(bits)) {
        return 0u;
    }
    if (is_nan_bits(bits)) {
        return FLAG_NAN;
    }
    return select(FLAG_POSITIVE_INFINITY, FLAG_NEGATIVE_INFINITY, (bits & SIGN_BIT) != 0u);
}
