// The score minus the mean of its group, which is rounded to f32; the sum of these over the group corrects it.
fn formula(token: Inputs) -> Outputs {
    return Outputs(token.scores - token.sums / token.sizes);
}
