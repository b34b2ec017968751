// KL estimators of d = log π − log π_ref: value and gradient. `low`, `high` bound the exponent of k3, `most` the value.

const ESTIMATOR_K1: u32 = 0u;
const ESTIMATOR_ABS: u32 = 1u;
const ESTIMATOR_K2: u32 = 2u;
const ESTIMATOR_K3: u32 = 3u;

fn kl_unbounded(d: f32) -> f32 {
    if (params.estimator == ESTIMATOR_K1) {
        return d;
    }
    if (params.estimator == ESTIMATOR_ABS) {
        return abs(d);
    }
    if (params.estimator == ESTIMATOR_K2) {
        return d * d * 0.5;
    }
    return exp_remainder(clamp(-d, params.low, params.high));
}

fn kl_value(d: f32) -> f32 {
    return clamp(kl_unbounded(d), -params.most, params.most);
}

fn kl_slope(d: f32) -> f32 {
    if (params.straight_through != 0u) {
        return d;
    }
    let value = kl_unbounded(d);
    if (-d < params.low || -d > params.high || value > params.most || value < -params.most) {
        return 0.0;
    }
    if (params.estimator == ESTIMATOR_K1) {
        return 1.0;
    }
    if (params.estimator == ESTIMATOR_ABS) {
        return sign(d);
    }
    if (params.estimator == ESTIMATOR_K2) {
        return d;
    }
    return one_minus_exp(-d);
}

// 1 − e^u; near 0 the terms cancel.
fn one_minus_exp(u: f32) -> f32 {
    if (abs(u) < 1.0) {
        return -(exp_remainder(u) + u);
    }
    return 1.0 - own_exp(u);
}
