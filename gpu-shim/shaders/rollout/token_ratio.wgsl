fn log_ratio(token: Inputs) -> f32 {
    return token.old_log_probs - token.rollout_log_probs;
}
