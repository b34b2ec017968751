fn formula(token: Inputs) -> Outputs {
    let d = token.log_probs - token.old_log_probs;
    return Outputs(d, d);
}
