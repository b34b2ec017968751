fn formula(token: Inputs) -> Outputs {
    let weight = applied_weight(raw_weight(log_ratio(token)));
    return Outputs(weight, weight, select(0.0, weight, token.last));
}
