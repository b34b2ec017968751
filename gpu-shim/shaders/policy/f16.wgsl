// Two entries per word, the first in the low half. In integers only: `unpack2x16float` may flush subnormal numbers and
// change NaN, and is free to give anything for an infinity.
fn load_logit(index: u32) -> u32 {
    let half = logits[index >> 1u] >> (16u * (index & 1u));
    let sign = (half & 0x8000u) << 16u;
    let magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) {
        // infinite or NaN
        return sign | INFINITY_BITS | ((magnitude & 0x3ffu) << 13u);
    }
    if (magnitude >= 0x400u) {
        // the exponent counts from −15, that of f32 from −127
        return sign | ((magnitude << 13u) + (112u << 23u));
    }
    if (magnitude == 0u) {
        return sign;
    }
    // subnormal, magnitude · 2⁻²⁴: normal in f32
    let top = firstLeadingBit(magnitude);
    return sign | ((top + 103u) << 23u) | ((magnitude << (23u - top)) & 0x7fffffu);
}
