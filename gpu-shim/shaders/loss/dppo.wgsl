// The weighted policy gradient of a token, 0 if its probability has moved too far. A loss defines `stays`.
fn policy_loss(token: Inputs) -> TokenLoss {
    let ratio = bounded_ratio(token.log_probs - token.old_log_probs, params.log_ratio_bound);
    let keep = stays(token);
    let slope = select(0.0, -token.advantages * min(ratio.ratio, params.ratio_cap), keep);
    let capped = keep && ratio.ratio > params.ratio_cap;
    return TokenLoss(slope * token.log_probs, slope, !keep, capped, -ratio.log_ratio);
}
