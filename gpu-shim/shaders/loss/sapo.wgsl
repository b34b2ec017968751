fn policy_loss(token: Inputs) -> TokenLoss {
    let ratio = bounded_ratio(token.log_probs - token.old_log_probs, params.log_ratio_bound);
    let tau = select(params.tau_negative, params.tau_positive, token.advantages > 0.0);
    let tail = own_exp(-tau * (ratio.ratio - 1.0));
    let gate = 1.0 / (1.0 + tail);
    // 1 − gate, which would cancel
    let rest = tail * gate;
    let slope = -4.0 * gate * rest * ratio.ratio * token.advantages;
    let loss = -(4.0 / tau) * gate * token.advantages;
    return TokenLoss(loss, select(slope, 0.0, ratio.beyond), false, false, -ratio.log_ratio);
}
