// Four gradients per store.
@group(0) @binding(7) var<storage, read_write> grad_logits: array<vec4<u32>>;

// By the thread that also writes the other three, or by none.
fn store_one(index: u32, bits: u32) {
    grad_logits[index >> 2u][index & 3u] = bits;
}

fn store_four(first: u32, bits: vec4<u32>) {
    grad_logits[first >> 2u] = bits;
}
