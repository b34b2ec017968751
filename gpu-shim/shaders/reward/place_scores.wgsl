// Computed for the last kept token of each sequence only.
fn formula(token: Inputs) -> Outputs {
    return Outputs(token.scores);
}
