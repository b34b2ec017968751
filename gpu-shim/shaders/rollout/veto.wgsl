fn formula(token: Inputs) -> Outputs {
    return Outputs(f32(token.vetoes == 0.0));
}
