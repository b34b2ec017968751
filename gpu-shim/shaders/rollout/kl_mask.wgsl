fn formula(token: Inputs) -> Outputs {
    let delta = token.rollout_log_probs - token.old_log_probs;
    return Outputs(f32(0.5 * (delta * delta) <= params.tau));
}
