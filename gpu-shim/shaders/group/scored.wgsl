fn formula(token: Inputs) -> Outputs {
    return Outputs(f32(token.scores != 0.0));
}
