// pg · (r + γ (V' + λ e') − V)
fn formula(token: Inputs) -> Outputs {
    let ratio = own_exp(token.log_probs - token.old_log_probs);
    return Outputs(capped(ratio, params.pg, params.leak) * (token.deltas + params.decay * token.ahead));
}
