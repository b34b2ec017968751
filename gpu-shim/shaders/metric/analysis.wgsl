// p = e^{log p}: entropy −p log p, and its weight p (1 − p) |A|.
fn formula(token: Inputs) -> Outputs {
    let p = own_exp(token.old_log_probs);
    let entropy = -(p * token.old_log_probs);
    let weight = p * (1.0 - p) * abs(token.advantages);
    return Outputs(token.advantages, token.old_log_probs, entropy, weight * entropy, token.rewards);
}
