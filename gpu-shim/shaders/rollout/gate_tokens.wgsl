fn formula(token: Inputs) -> Outputs {
    return Outputs(gate_statistic(token.old_log_probs, token.rollout_log_probs));
}
