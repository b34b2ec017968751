fn formula(token: Inputs) -> Outputs {
    return Outputs(token.values);
}
