fn formula(token: Inputs) -> Outputs {
    return Outputs(token.grad_kl * kl_value(token.log_probs - token.ref_log_probs));
}
