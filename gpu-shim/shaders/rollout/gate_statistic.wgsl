const STATISTIC_RATIO: u32 = 0u;
const STATISTIC_BINARY_KL: u32 = 1u;

fn probability(log_prob: f32) -> f32 {
    return clamp(own_exp(log_prob), 1e-6, 0.999999);
}

// The log-ratio, or a divergence of the two outcomes "this token" and "another one".
fn gate_statistic(old: f32, rollout: f32) -> f32 {
    if (params.statistic == STATISTIC_RATIO) {
        return old - rollout;
    }
    let p = probability(rollout);
    let q = probability(old);
    if (params.statistic == STATISTIC_BINARY_KL) {
        return p * own_ln(p / q) + (1.0 - p) * own_ln((1.0 - p) / (1.0 - q));
    }
    return abs(p - q);
}
