fn load_grad_entropy(slot: u32) -> u32 {
    return 0u;
}

fn gradients(bits: vec4<u32>, row: Row, g: f32, h: f32) -> vec4<f32> {
    return exp_of_fall(fall(bits, row.top)) * (-g * row.inverse_sum);
}
