fn formula(token: Inputs) -> Outputs {
    let d = token.log_probs - token.ref_log_probs;
    let value = kl_value(d);
    let grad = params.coefficient * (params.share * token.row_weights) * kl_slope(d);
    return Outputs(grad, value * token.row_weights, value);
}
