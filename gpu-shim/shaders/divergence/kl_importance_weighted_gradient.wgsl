fn formula(token: Inputs) -> Outputs {
    let d = token.log_probs - token.ref_log_probs;
    let weight = importance(token);
    let slope = kl_slope(d);
    if (params.weight == WEIGHT_SEQUENCE) {
        return Outputs(token.grad_kl * weight * slope + token.shared_slopes);
    }
    let value = kl_value(d);
    let beyond = params.weight == WEIGHT_TOKEN_BOUNDED && abs(weight * value) > MOST_PRODUCT;
    let cut = params.cut_beyond != 0u && abs(d) > params.high;
    return Outputs(select(token.grad_kl * weight * (slope + value), 0.0, beyond || cut));
}
