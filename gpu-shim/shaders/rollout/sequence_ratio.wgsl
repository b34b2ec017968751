// The sum over the sequence, or its mean.
fn log_ratio(token: Inputs) -> f32 {
    return token.log_ratios / select(1.0, token.counts, params.geometric != 0u);
}
