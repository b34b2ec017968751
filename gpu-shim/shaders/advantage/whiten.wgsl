const PLACE_INSIDE: u32 = 0u;
const PLACE_OUTSIDE: u32 = 1u;

fn formula(token: Inputs) -> Outputs {
    // a NaN or an infinity in any kept token: the mean is not a number
    poisoned = (sums[1] | squares[1]) != 0u;
    let mean = recorded_mean(sums[2], sums[3]);
    let rest = bitcast<f32>(squares[2]);
    let m2 = max(bitcast<f32>(squares[4]) - rest * rest / params.count, 0.0);
    let variance = m2 / params.spread;
    var deviation = 1.0;
    if (params.unit == 0u) {
        if (params.place == PLACE_INSIDE) {
            deviation = own_sqrt(variance + params.epsilon);
        } else if (params.place == PLACE_OUTSIDE) {
            deviation = own_sqrt(variance) + params.epsilon;
        } else {
            deviation = own_sqrt(max(variance, params.epsilon));
        }
    }
    let distance = (token.values - mean.hi) - mean.lo;
    var white = 0.0;
    if (deviation > 0.0) {
        white = distance / deviation;
    }
    if (params.keep_mean != 0u) {
        white += mean.hi;
    }
    return Outputs(white);
}
