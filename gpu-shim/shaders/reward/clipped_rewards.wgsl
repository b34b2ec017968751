fn formula(token: Inputs) -> Outputs {
    let score = clamp(token.scores, params.low, params.high);
    return Outputs(select(0.0, score, token.last) - params.beta * token.kl);
}
