fn formula(token: Inputs) -> Outputs {
    let delta = token.old_log_probs - token.rollout_log_probs;
    let ratio = own_exp(clamp(delta, -20.0, 20.0));
    return Outputs(delta, delta, exp_remainder(delta), ratio * ratio);
}
