// The score in equal parts on the last k kept tokens.
fn formula(token: Inputs) -> Outputs {
    let share = token.scores / min(token.counts, params.k);
    return Outputs(select(0.0, share, token.left <= params.k));
}
