// Divided by the mean weight, unless that is nearly 0.
fn formula(token: Inputs) -> Outputs {
    let place = 2u + 2u * params.term;
    let mean = (bitcast<f32>(sums[place]) + bitcast<f32>(sums[place + 1u])) / params.count;
    poisoned = sums[1] != 0u;
    return Outputs(select(token.weights, token.weights / mean, mean > 1e-8));
}
