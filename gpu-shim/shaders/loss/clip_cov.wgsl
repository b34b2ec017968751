fn policy_loss(token: Inputs) -> TokenLoss {
    let log_ratio = token.log_probs - token.old_log_probs;
    let ratio = own_exp(log_ratio);
    let clipped = clip_token(ratio, token.advantages);
    let selected = token.selected != 0.0;
    let slope = select(-token.advantages * ratio, 0.0, clipped.flat || selected);
    return TokenLoss(select(clipped.loss, 0.0, selected), slope, selected, false, -log_ratio);
}
