fn formula(token: Inputs) -> Outputs {
    let p = own_exp(token.old_log_probs);
    let q = own_exp(token.rollout_log_probs);
    return Outputs(abs(p - q), p, q, abs(p - q));
}
