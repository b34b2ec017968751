@group(0) @binding(8) var<storage, read> grad_entropy: array<u32>;

fn load_grad_entropy(slot: u32) -> u32 {
    return grad_entropy[slot];
}

fn gradients(bits: vec4<u32>, row: Row, g: f32, h: f32) -> vec4<f32> {
    let distance = fall(bits, row.top);
    let p = exp_of_fall(distance) * row.inverse_sum;
    return -p * (g + h * (distance - row.mean_distance));
}
