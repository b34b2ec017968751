// Distance from the mean of the segment, which is rounded to f32; the sum of these over the segment corrects it.
fn formula(token: Inputs) -> Outputs {
    let distance = token.values - token.sums / token.sizes;
    return Outputs(distance, distance * distance);
}
