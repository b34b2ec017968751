fn stays(token: Inputs) -> bool {
    let p = own_exp(token.log_probs);
    let q = own_exp(token.old_log_probs);
    // no probability: the logarithm may be undefined
    if (p > 1.0 || q > 1.0) {
        out_of_range = true;
        return false;
    }
    let others = own_ln((1.0 - q + 1e-8) / (1.0 - p + 1e-8));
    let kl = q * (token.old_log_probs - token.log_probs) + (1.0 - q) * others;
    let up = kl <= params.clip_high || p <= q;
    let down = kl <= params.clip_low || p >= q;
    return select(down, up, token.advantages > 0.0);
}
