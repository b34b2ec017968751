// V + c (r + γ A' − Q) as a step of the recursion A
fn formula(token: Inputs) -> Outputs {
    return Outputs(token.values + token.c * (token.rewards - token.action_values), params.gamma * token.c);
}
