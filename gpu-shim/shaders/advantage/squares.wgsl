// Distances from the mean: their sum, which rounding leaves near 0, and that of their squares.
fn formula(token: Inputs) -> Outputs {
    let mean = recorded_mean(sums[2], sums[3]);
    let distance = (token.values - mean.hi) - mean.lo;
    return Outputs(distance, distance * distance);
}
