fn formula(token: Inputs) -> Outputs {
    return Outputs(token.base + params.coefficient * (token.teacher_log_probs - token.old_log_probs));
}
