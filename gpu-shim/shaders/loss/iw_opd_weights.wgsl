// 1 + γ (1 − before / total), where `before` + `rests` = `totals` and total is at least ε.
fn formula(token: Inputs) -> Outputs {
    if (token.totals < params.epsilon) {
        return Outputs(1.0 + params.gamma * (1.0 - (token.totals - token.rests) / params.epsilon));
    }
    return Outputs(1.0 + params.gamma * (token.rests / token.totals));
}
