//! The elementary functions, swept over all magnitudes.

use tokenwise::Result;

use crate::hash::{Hash, Value};

const POINTS: u64 = 1 << 14;
/// Bit patterns between one argument and the next: goes once through the whole range; odd, so that the low bits vary.
const STRIDE: u64 = (1 << 50) + 0x0159_2653_5897;

/// Every sign and exponent many times, then the special cases: zeros, the ends of the normal and subnormal numbers,
/// infinities, NaN, the largest and smallest arguments of `exp`, and their neighbours.
pub(crate) fn sweep<R: Value>(function: fn(R) -> R) -> Result<u64> {
    let mut hash = Hash::new();
    let mut bits = 0_u64;
    for _ in 0..POINTS {
        hash.add(&function(R::of_bits(bits)));
        bits = bits.wrapping_add(STRIDE);
    }
    for special in [
        0.0,
        1.0,
        f64::MIN_POSITIVE,
        f64::from(f32::MIN_POSITIVE),
        f64::MAX,
        f64::from(f32::MAX),
        f64::INFINITY,
        core::f64::consts::LN_2,
        0.5 * core::f64::consts::LN_2,
        core::f64::consts::SQRT_2,
        core::f64::consts::FRAC_1_SQRT_2,
        87.336_544_750_553_1,
        88.722_839_052_068_35,
        103.972_076_416_015_62,
        708.396_418_532_264_1,
        709.782_712_893_384,
        745.133_219_101_941_1,
    ] {
        for sign in [1.0, -1.0] {
            let special = R::narrow(special * sign);
            for steps in -4..=4 {
                hash.add(&function(special.neighbour(steps)));
            }
        }
    }
    Ok(hash.value())
}
