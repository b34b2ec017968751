// ln 1e-8
const LEAST: f32 = -18.420681;

fn formula(token: Inputs) -> Outputs {
    let log_ratio = clamp(token.log_probs - token.old_log_probs, -20.0, 20.0);
    if (token.weights < 0.0) {
        poisoned = true;
        return Outputs(0.0);
    }
    if (token.weights <= 1e-8) {
        return Outputs(log_ratio + LEAST);
    }
    return Outputs(log_ratio + min(own_ln(token.weights), 20.0));
}
