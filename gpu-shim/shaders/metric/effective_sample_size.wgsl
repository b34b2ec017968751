fn formula(token: Inputs) -> Outputs {
    return Outputs(token.weights, token.weights * token.weights);
}
