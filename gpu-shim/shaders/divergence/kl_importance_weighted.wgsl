fn formula(token: Inputs) -> Outputs {
    let product = importance(token) * kl_value(token.log_probs - token.ref_log_probs);
    if (params.weight == WEIGHT_TOKEN_BOUNDED) {
        return Outputs(clamp(product, -MOST_PRODUCT, MOST_PRODUCT));
    }
    return Outputs(product);
}
