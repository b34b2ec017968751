// A ratio capped, and a share of what is above the cap let through.
fn capped(ratio: f32, cap: f32, leak: f32) -> f32 {
    let inside = min(ratio, cap);
    return inside + leak * (ratio - inside);
}
