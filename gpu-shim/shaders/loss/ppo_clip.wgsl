fn policy_loss(token: Inputs) -> TokenLoss {
    let log_ratio = token.log_probs - token.old_log_probs;
    let ratio = bounded_ratio(log_ratio, params.log_ratio_bound);
    let clipped = clip_token(ratio.ratio, token.advantages);
    let slope = select(-token.advantages * ratio.ratio, 0.0, clipped.flat || ratio.beyond);
    let kl = -clamp(log_ratio, -params.kl_bound, params.kl_bound);
    return TokenLoss(clipped.loss, slope, clipped.held, clipped.held_by_dual, kl);
}
