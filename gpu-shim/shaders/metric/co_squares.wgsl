// Distances of two quantities from their means: their sums, which rounding leaves near 0, and those of their products.
fn formula(token: Inputs) -> Outputs {
    let mean_x = recorded_mean(sums[2], sums[3]);
    let mean_y = recorded_mean(sums[4], sums[5]);
    let dx = (token.x - mean_x.hi) - mean_x.lo;
    let dy = (token.y - mean_y.hi) - mean_y.lo;
    return Outputs(dx, dy, dx * dx, dy * dy, dx * dy);
}
