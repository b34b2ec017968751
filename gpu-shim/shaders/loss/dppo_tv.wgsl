fn stays(token: Inputs) -> bool {
    let moved = own_exp(token.log_probs) - own_exp(token.old_log_probs);
    return select(moved >= -params.clip_low, moved <= params.clip_high, token.advantages > 0.0);
}
