// The product of rollout and aggregation weights, for kernels without a binding for each.
fn formula(token: Inputs) -> Outputs {
    return Outputs(token.weights * token.row_weights);
}
