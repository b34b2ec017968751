fn formula(token: Inputs) -> Outputs {
    return Outputs(token.x - token.y);
}
