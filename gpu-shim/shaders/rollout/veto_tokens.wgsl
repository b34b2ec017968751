// 1 for a token that rejects its sequence.
fn formula(token: Inputs) -> Outputs {
    let ratio = own_exp(token.old_log_probs - token.rollout_log_probs);
    return Outputs(select(1.0, 0.0, ratio >= params.lower && ratio <= params.upper));
}
