// Two entries per word, the first in the low half. A bf16 is the high half of an f32.
fn load_logit(index: u32) -> u32 {
    return (logits[index >> 1u] >> (16u * (index & 1u))) << 16u;
}
