fn policy_loss(token: Inputs) -> TokenLoss {
    let d = token.log_probs - token.old_log_probs;
    let loss = 0.5 * params.beta * d * d - token.log_probs * token.advantages;
    return TokenLoss(loss, params.beta * d - token.advantages, false, false, -d);
}
