// Scaled by the share of scores that are not 0.
fn formula(token: Inputs) -> Outputs {
    let scored = max(bitcast<f32>(counts[2]), 1.0);
    return Outputs(token.centred * (params.count / scored) / params.norm);
}
