fn policy_loss(token: Inputs) -> TokenLoss {
    let slope = -token.advantages;
    return TokenLoss(slope * token.log_probs, slope, false, false, token.old_log_probs - token.log_probs);
}
