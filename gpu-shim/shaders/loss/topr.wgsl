fn policy_loss(token: Inputs) -> TokenLoss {
    let good = token.scores > 0.0;
    let ratio = own_exp(token.log_probs - token.old_log_probs);
    let taper = select(min(ratio, 1.0), 1.0, good);
    let slope = -select(params.negative, params.positive, good) * taper * token.advantages;
    return TokenLoss(slope * token.log_probs, slope, false, false, 0.0);
}
