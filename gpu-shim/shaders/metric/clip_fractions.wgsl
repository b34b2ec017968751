fn formula(token: Inputs) -> Outputs {
    let clipped = clip_token(own_exp(token.log_probs - token.old_log_probs), token.advantages);
    let negative = token.advantages < 0.0;
    return Outputs(f32(clipped.held && negative), f32(clipped.held && !negative), f32(clipped.held_by_dual));
}
