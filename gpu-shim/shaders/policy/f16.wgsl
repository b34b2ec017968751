// Special values in integers only: `unpack2x16float` may flush subnormal numbers and change NaN, and is free to give
// anything for an infinity.
fn widened(half: vec4<u32>) -> vec4<u32> {
    let sign = (half & vec4<u32>(0x8000u)) << vec4<u32>(16u);
    let magnitude = half & vec4<u32>(0x7fffu);
    let shifted = magnitude << vec4<u32>(13u);
    // the exponent counts from −15, that of f32 from −127
    let normal = shifted + vec4<u32>(112u << 23u);
    // infinite or NaN
    let special = shifted | vec4<u32>(INFINITY_BITS);
    // magnitude · 2⁻²⁴: normal in f32, and exact
    let subnormal = bitcast<vec4<u32>>(vec4<f32>(magnitude) * 0x1p-24);
    let finite = select(normal, subnormal, magnitude < vec4<u32>(0x400u));
    return sign | select(finite, special, magnitude >= vec4<u32>(0x7c00u));
}
