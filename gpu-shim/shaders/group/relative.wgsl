const SINGLETON_ZERO: u32 = 0u;
const SINGLETON_RAW: u32 = 1u;
const SCALE_DEVIATION: u32 = 0u;
const SCALE_UNIT: u32 = 1u;

fn formula(token: Inputs) -> Outputs {
    let alone = token.sizes < 2.0;
    var centred = token.centred;
    if (alone) {
        poisoned = params.singleton > SINGLETON_RAW;
        centred = select(0.0, token.scores, params.singleton == SINGLETON_RAW);
    }
    if (params.scale == SCALE_UNIT || centred == 0.0) {
        return Outputs(centred);
    }
    var deviation = 1.0;
    if (params.scale != SCALE_DEVIATION) {
        deviation = batch_deviation();
    } else if (!alone) {
        deviation = own_sqrt(token.squares / (token.sizes - params.degrees));
    }
    return Outputs(centred / (deviation + params.epsilon));
}

// The deviation of all scores, 0 if there are too few.
fn batch_deviation() -> f32 {
    if (params.count <= params.degrees) {
        return 0.0;
    }
    poisoned = poisoned || all[1] != 0u;
    let rest = bitcast<f32>(all[2]);
    let m2 = max(bitcast<f32>(all[4]) - rest * rest / params.count, 0.0);
    return own_sqrt(m2 / (params.count - params.degrees));
}
