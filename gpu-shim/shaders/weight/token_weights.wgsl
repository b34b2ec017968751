fn formula(token: Inputs) -> Outputs {
    let gap = token.log_probs - token.ref_log_probs;
    return Outputs(token_weight(token.log_probs, gap, token.advantages, token.structural).weight);
}
