// A bf16 is the high half of an f32.
fn widened(half: vec4<u32>) -> vec4<u32> {
    return half << vec4<u32>(16u);
}
