fn formula(token: Inputs) -> Outputs {
    let ratio = own_exp(token.log_probs - token.old_log_probs);
    let rho = capped(ratio, params.rho, params.leak);
    return Outputs(rho * token.deltas, params.decay * capped(ratio, params.c, params.leak));
}
