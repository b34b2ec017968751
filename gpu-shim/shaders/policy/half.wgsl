// Two entries per word, the first in the low half.
fn load_logit(index: u32) -> u32 {
    let half = (load_word(index >> 1u) >> (16u * (index & 1u))) & 0xffffu;
    return widened(vec4<u32>(half)).x;
}
