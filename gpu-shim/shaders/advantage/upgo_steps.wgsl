// Goes on with the return while it is at least as good as the value.
fn formula(token: Inputs) -> Outputs {
    let good = token.rewards + token.next_values >= token.values;
    return Outputs(select(token.values, token.rewards, good), select(0.0, 1.0, good));
}
