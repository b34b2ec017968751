// The ratio of a sequence; negative if its mean log-ratio is beyond the cap.
fn formula(sequence: Inputs) -> Outputs {
    let mean = sequence.sums / sequence.counts;
    let ratio = own_exp(min(mean, params.cap));
    return Outputs(select(ratio, -ratio, mean > params.cap));
}
