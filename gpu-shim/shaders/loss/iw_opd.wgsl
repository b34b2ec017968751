fn formula(token: Inputs) -> Outputs {
    let weighted = token.ratios * token.advantages;
    let grad = -weighted * (params.share * token.row_weights);
    let loss = -token.log_probs * weighted * token.row_weights;
    return Outputs(grad, loss, weighted, abs(token.advantages), token.ratios);
}
