fn policy_loss(token: Inputs) -> TokenLoss {
    let ratio = bounded_ratio(token.log_probs - token.old_log_probs, params.log_ratio_bound);
    let inside = clamp(ratio.ratio, params.low, params.high);
    let outside = ratio.ratio < params.low || ratio.ratio > params.high;
    let slope = -inside * token.advantages;
    let held = outside && (params.positive_only == 0u || token.advantages > 0.0);
    return TokenLoss(slope * token.log_probs, slope, held, false, -ratio.log_ratio);
}
