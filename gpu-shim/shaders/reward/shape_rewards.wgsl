fn formula(token: Inputs) -> Outputs {
    return Outputs(token.scores - params.beta * token.kl);
}
