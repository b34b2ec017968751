// The clip of PPO with its optional second bound. Bounds that do not apply are LARGEST.

struct Clipped {
    loss: f32,
    // beyond the clip on the side where it holds
    held: bool,
    // beyond the dual clip
    held_by_dual: bool,
    // the loss does not depend on the ratio here
    flat: bool,
}

fn clip_token(ratio: f32, advantage: f32) -> Clipped {
    let negative = advantage < 0.0;
    let positive = advantage > 0.0;
    let least = select(-LARGEST, params.clip_low, negative);
    let most = select(LARGEST, params.clip_high, positive);
    let flat_above = select(params.flat_positive, params.flat_negative, negative);
    let dual = select(params.dual_positive, params.dual_negative, negative);
    let unclipped = min(ratio, params.clip_free);
    var loss = max(-advantage * unclipped, -advantage * clamp(ratio, params.clip_low, params.clip_high));
    if (negative && params.clip_cap < LARGEST) {
        loss = min(loss, -advantage * params.clip_cap);
    }
    let held = unclipped < least || unclipped > most;
    return Clipped(loss, held, ratio > dual, ratio < least || ratio > flat_above);
}
