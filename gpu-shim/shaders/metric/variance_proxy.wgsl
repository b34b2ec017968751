// s = 1 − 2π + Σπ²: scaled by the squared weight, and that divided by it again, as verl does.
fn formula(token: Inputs) -> Outputs {
    let s = (1.0 - 2.0 * own_exp(token.old_log_probs)) + token.sum_pi_squared;
    let square = token.weights * token.weights;
    let scaled = s * square;
    return Outputs(scaled / max(square, 1e-10), scaled);
}
