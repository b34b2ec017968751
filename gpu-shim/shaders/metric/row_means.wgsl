// A sequence without a kept token has the sum 0.
fn formula(token: Inputs) -> Outputs {
    return Outputs(token.sums / max(token.counts, 1.0));
}
