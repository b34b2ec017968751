fn formula(sequence: Inputs) -> Outputs {
    return Outputs(select(0.0, sequence.counts, sequence.scores > 0.0));
}
