fn formula(token: Inputs) -> Outputs {
    let ratio = abs(token.ratios);
    let clipped = clip_token(ratio, token.advantages);
    let slope = select(-token.advantages * ratio * token.weights, 0.0, clipped.flat || token.ratios < 0.0);
    let grad = select(slope, slope * (params.share * token.row_weights), params.token_form != 0u);
    return Outputs(grad, clipped.loss * token.weights * token.row_weights, f32(clipped.held));
}
