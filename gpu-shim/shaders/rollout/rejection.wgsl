const STATISTIC_K1: u32 = 0u;
const STATISTIC_K2: u32 = 1u;

fn rejection_statistic(token: Inputs) -> f32 {
    let delta = clamp(token.old_log_probs - token.rollout_log_probs, -20.0, 20.0);
    if (params.statistic == STATISTIC_K1) {
        return -delta;
    }
    if (params.statistic == STATISTIC_K2) {
        return 0.5 * (delta * delta);
    }
    return exp_remainder(delta);
}
