// The gradient that all tokens of a sequence share.
fn formula(sequence: Inputs) -> Outputs {
    return Outputs(sequence.slopes * (params.share * sequence.row_weights) / sequence.counts);
}
