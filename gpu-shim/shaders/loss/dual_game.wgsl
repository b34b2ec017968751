fn policy_loss(token: Inputs) -> TokenLoss {
    let gap = token.log_probs - token.ref_log_probs;
    let base = select(token.advantages, params.gamma * token.advantages, token.advantages < 0.0);
    let w = token_weight(token.log_probs, gap, token.advantages, token.structural);
    let surplus = -token.log_probs - 1.0;
    let entropy = params.lambda * w.weight * surplus;
    // prices of 0 are exact: the inputs are finite
    let advantage = base - entropy - params.beta * gap;
    let advantage_slope = params.lambda * (w.weight - w.slope * surplus) - params.beta;

    let ratio = bounded_ratio(token.log_probs - token.old_log_probs, params.log_ratio_bound);
    let clipped = clip_token(ratio.ratio, advantage);
    var slope = select(-advantage * ratio.ratio, 0.0, clipped.flat || ratio.beyond);
    if (params.through != 0u) {
        let inside = clamp(ratio.ratio, params.clip_low, params.clip_high);
        var taken = select(ratio.ratio, inside, clipped.held);
        if (advantage == 0.0) {
            taken = 0.5 * (ratio.ratio + inside);
        }
        slope -= advantage_slope * taken;
    }
    let upper = clipped.held && advantage > 0.0;
    let lower = clipped.held && advantage < 0.0;
    return TokenLoss(clipped.loss, slope, upper, lower, -ratio.log_ratio);
}
