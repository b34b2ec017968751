// `held` is the log-ratio after the clip, `free` 1 where the clip does not hold it.
fn formula(token: Inputs) -> Outputs {
    let d = token.log_probs - token.old_log_probs;
    let positive = token.advantages > 0.0;
    let negative = token.advantages < 0.0;
    let below = d < -params.clip_low;
    let above = d > params.clip_high;
    var held = 0.0;
    if (positive) {
        held = min(d, params.clip_high);
    }
    if (negative) {
        held = max(d, -params.clip_low);
    }
    let free = (positive && !above) || (negative && !below);
    let outside = above || below;
    return Outputs(held, f32(free), f32(outside && positive), f32(outside && negative), -d);
}
