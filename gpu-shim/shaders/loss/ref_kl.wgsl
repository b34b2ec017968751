fn formula(token: Inputs) -> Outputs {
    let d = token.log_probs - token.old_log_probs;
    let advantage = token.ref_log_probs - token.log_probs;
    let fallen = own_exp(token.log_probs) - own_exp(token.old_log_probs) < -params.fall;
    let gain = select(own_exp(d) * advantage, 0.0, fallen);
    let loss = (params.drift * d * d - gain) * token.weights;
    let grad = (2.0 * params.drift * d - gain) * token.weights * (params.share * token.row_weights);
    let mismatch = exp_remainder(d);
    let of_fallen = select(0.0, mismatch, fallen);
    let of_kept = select(mismatch, 0.0, fallen);
    return Outputs(grad, loss * token.row_weights, advantage, f32(fallen), of_fallen, of_kept);
}
