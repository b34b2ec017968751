// The core refuses negative weights and sequences without a positive one: the flag leaves them to it.
fn formula(token: Inputs) -> Outputs {
    if (token.weights < 0.0 || token.totals <= 0.0) {
        out_of_range = true;
        return Outputs(0.0);
    }
    return Outputs(token.weights * (token.scores / token.totals));
}
