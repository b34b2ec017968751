// Four logits in half precision per load.
@group(0) @binding(3) var<storage, read> logits: array<vec2<u32>>;

fn load_word(index: u32) -> u32 {
    return logits[index >> 1u][index & 1u];
}

fn load_four(first: u32) -> vec4<u32> {
    let words = logits[first >> 2u];
    return widened(vec4<u32>(words.x & 0xffffu, words.x >> 16u, words.y & 0xffffu, words.y >> 16u));
}
