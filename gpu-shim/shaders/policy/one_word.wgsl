// Logits word by word: any vocabulary, any start.
@group(0) @binding(3) var<storage, read> logits: array<u32>;

fn load_word(index: u32) -> u32 {
    return logits[index];
}

fn load_four(first: u32) -> vec4<u32> {
    return vec4<u32>(load_logit(first), load_logit(first + 1u), load_logit(first + 2u), load_logit(first + 3u));
}
