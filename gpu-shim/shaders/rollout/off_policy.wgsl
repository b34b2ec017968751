fn formula(token: Inputs) -> Outputs {
    let near = token.sums / token.counts <= params.threshold;
    return Outputs(f32(near || token.advantages >= 0.0));
}
