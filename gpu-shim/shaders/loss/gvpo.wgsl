fn formula(sequence: Inputs) -> Outputs {
    let log_ratio = params.beta * (sequence.centred - sequence.rests / sequence.sizes);
    let error = log_ratio - sequence.advantages / sequence.counts;
    let others = sequence.sizes - 1.0;
    return Outputs(params.beta * error / others, 0.5 * error * error / others);
}
