fn formula(token: Inputs) -> Outputs {
    let kl = kl_value(token.old_log_probs - token.ref_log_probs);
    return Outputs(token.scores - params.beta * kl, kl);
}
