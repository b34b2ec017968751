fn formula(token: Inputs) -> Outputs {
    return Outputs(token.x + params.factor * token.y);
}
