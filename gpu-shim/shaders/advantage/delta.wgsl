// r + γ V' − V
fn formula(token: Inputs) -> Outputs {
    return Outputs((token.rewards - token.values) + params.gamma * token.next_values);
}
