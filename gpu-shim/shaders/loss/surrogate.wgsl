fn policy_loss(token: Inputs) -> TokenLoss {
    let ratio = bounded_ratio(token.log_probs - token.old_log_probs, params.log_ratio_bound);
    let loss = -token.advantages * ratio.ratio;
    return TokenLoss(loss, select(loss, 0.0, ratio.beyond), ratio.beyond, false, -ratio.log_ratio);
}
