fn formula(token: Inputs) -> Outputs {
    let weight = min(token.ratios, params.rho);
    let ahead = params.gamma * token.next_values - token.values;
    let constant = select(weight * (token.rewards + ahead), weight * token.rewards + ahead, params.v4 != 0u);
    return Outputs(constant, params.decay * min(token.ratios, params.c));
}
