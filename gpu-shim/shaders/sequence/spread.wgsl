fn formula(token: Inputs) -> Outputs {
    return Outputs(token.parts * token.factors);
}
