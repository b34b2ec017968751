// The importance weight of a bounded log-ratio, and the bound on it. Bounds that do not apply are ±LARGEST.

fn raw_weight(log_ratio: f32) -> f32 {
    return own_exp(clamp(log_ratio, -params.log_bound, params.log_bound));
}

fn applied_weight(weight: f32) -> f32 {
    if (params.zero != 0u) {
        return select(weight, 0.0, weight < params.lower || weight > params.upper);
    }
    return clamp(weight, params.lower, params.upper);
}
