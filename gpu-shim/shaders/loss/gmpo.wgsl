fn formula(sequence: Inputs) -> Outputs {
    let ratio = own_exp((sequence.held + sequence.logs) / sequence.counts);
    let loss = -(sequence.advantages / sequence.counts) * ratio;
    return Outputs(loss * params.share / sequence.counts, loss);
}
