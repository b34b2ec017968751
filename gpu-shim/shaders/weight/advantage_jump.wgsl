// `befores` has one more than the slot of the kept token before, 0 for the first of a sequence.
fn formula(token: Inputs) -> Outputs {
    let before = befores[token.at];
    if (before == 0u) {
        return Outputs(0.0);
    }
    let bits = all_advantages[before - 1u];
    poisoned = is_nan_bits(bits);
    return Outputs(abs(token.advantages - finite(bits)));
}
