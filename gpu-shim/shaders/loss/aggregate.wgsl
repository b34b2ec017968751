fn formula(token: Inputs) -> Outputs {
    return Outputs(params.share * token.row_weights, token.losses * token.row_weights);
}
