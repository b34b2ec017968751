@group(0) @binding(7) var<storage, read_write> grad_logits: array<u32>;

fn store_one(index: u32, bits: u32) {
    grad_logits[index] = bits;
}

fn store_four(first: u32, bits: vec4<u32>) {
    grad_logits[first] = bits.x;
    grad_logits[first + 1u] = bits.y;
    grad_logits[first + 2u] = bits.z;
    grad_logits[first + 3u] = bits.w;
}
