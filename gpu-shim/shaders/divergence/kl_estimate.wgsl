fn formula(token: Inputs) -> Outputs {
    return Outputs(kl_value(token.log_probs - token.ref_log_probs));
}
