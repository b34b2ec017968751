fn formula(token: Inputs) -> Outputs {
    let weight = token.weights + 1e-10;
    if (weight <= 1e-30) {
        poisoned = true;
        return Outputs(0.0);
    }
    return Outputs(own_ln(weight));
}
