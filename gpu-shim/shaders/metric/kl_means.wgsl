fn formula(token: Inputs) -> Outputs {
    let d = token.log_probs - token.ref_log_probs;
    return Outputs(d, abs(d), d * d * 0.5, exp_remainder(-d));
}
