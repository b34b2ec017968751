fn formula(token: Inputs) -> Outputs {
    let advantage = token.teacher_log_probs - token.old_log_probs;
    return Outputs(advantage, abs(advantage));
}
