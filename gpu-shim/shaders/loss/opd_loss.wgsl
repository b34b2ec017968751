const ROUTE_CLIPPED: u32 = 0u;
const ROUTE_SURROGATE: u32 = 1u;
const ROUTE_REINFORCE: u32 = 2u;

fn routed(token: Inputs, estimate: f32) -> TokenLoss {
    let log_ratio = token.log_probs - token.old_log_probs;
    let bounded = clamp(estimate, -params.max_loss, params.max_loss);
    let advantage = -bounded;
    let ratio = bounded_ratio(log_ratio, params.log_ratio_bound);
    if (params.route == ROUTE_CLIPPED) {
        let clipped = clip_token(ratio.ratio, advantage);
        let slope = select(-advantage * ratio.ratio, 0.0, clipped.flat || ratio.beyond);
        return TokenLoss(clipped.loss, slope, clipped.held, clipped.held_by_dual, -ratio.log_ratio);
    }
    if (params.route == ROUTE_SURROGATE) {
        let loss = -advantage * ratio.ratio;
        return TokenLoss(loss, select(loss, 0.0, ratio.beyond), false, false, -ratio.log_ratio);
    }
    if (params.route == ROUTE_REINFORCE) {
        return TokenLoss(-advantage * token.log_probs, -advantage, false, false, -log_ratio);
    }
    let beyond = estimate > params.max_loss || estimate < -params.max_loss;
    let slope = select(kl_slope(token.log_probs - token.teacher_log_probs), 0.0, beyond);
    return TokenLoss(bounded, slope, false, false, -log_ratio);
}

fn formula(token: Inputs) -> Outputs {
    let estimate = kl_value(token.log_probs - token.teacher_log_probs);
    let sum = weighed(routed(token, estimate), token);
    return Outputs(sum.grad, sum.loss, sum.held, sum.held_below, sum.kl, abs(estimate));
}
