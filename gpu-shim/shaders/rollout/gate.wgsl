const LEVEL_OFF: u32 = 0u;
const LEVEL_SEQUENCE: u32 = 2u;

fn formula(token: Inputs) -> Outputs {
    let kl = token.rollout_log_probs - token.old_log_probs;
    if (params.level == LEVEL_OFF) {
        return Outputs(1.0, kl, 0.0, 0.0);
    }
    var statistic = gate_statistic(token.old_log_probs, token.rollout_log_probs);
    if (params.level == LEVEL_SEQUENCE) {
        statistic = token.sums / token.counts;
    }
    if (params.statistic == STATISTIC_RATIO) {
        statistic = own_exp(statistic);
    }
    let inside = statistic >= params.lower && statistic <= params.upper;
    var weight = 0.0;
    if (params.clip != 0u) {
        weight = clamp(statistic, params.lower, params.upper);
    } else if (inside) {
        weight = own_exp(-kl);
    }
    let outside = select(1.0, 0.0, inside);
    return Outputs(weight, kl, outside, select(0.0, outside, token.last));
}
