fn formula(token: Inputs) -> Outputs {
    let inside = clamp(token.predictions, token.values - params.clip, token.values + params.clip);
    let error = token.predictions - token.returns;
    let clipped_error = inside - token.returns;
    let plain = error * error;
    let clipped = clipped_error * clipped_error;
    // inside the clip both are the same number, even if the driver fuses one of the squares
    let held = inside != token.predictions && clipped > plain;
    let grad = select(2.0 * error * (params.share * token.row_weights), 0.0, held);
    return Outputs(grad, select(plain, clipped, held) * token.row_weights, f32(held));
}
