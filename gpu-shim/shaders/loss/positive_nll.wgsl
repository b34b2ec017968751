// `totals` is the record of the number of tokens with a positive score.
fn formula(token: Inputs) -> Outputs {
    if (token.scores <= 0.0) {
        return Outputs(0.0, 0.0);
    }
    let count = bitcast<f32>(totals[RECORD_FLAGS]) + bitcast<f32>(totals[RECORD_FLAGS + 1u]);
    return Outputs(-params.mu / count, token.log_probs);
}
