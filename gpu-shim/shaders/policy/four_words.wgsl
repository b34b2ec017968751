// Four f32 logits per load.
@group(0) @binding(3) var<storage, read> logits: array<vec4<u32>>;

fn load_word(index: u32) -> u32 {
    return logits[index >> 2u][index & 3u];
}

fn load_four(first: u32) -> vec4<u32> {
    return logits[first >> 2u];
}
