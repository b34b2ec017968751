// ln 1e-8
const LEAST: f32 = -18.420681;

fn formula(token: Inputs) -> Outputs {
    let log_w = clamp(token.log_ratios, LEAST, 20.0);
    let negative = token.advantages < 0.0;
    let k = select(params.k_positive, params.k_negative, negative);
    let lambda = select(params.lambda_positive, params.lambda_negative, negative);
    let phi = own_exp(lambda + k * log_w - lambda * own_exp(log_w));
    let slope = -phi * token.advantages;
    let first = firsts[token.sequence] == token.at;
    let loss = slope * token.log_probs * token.row_weights;
    return Outputs(slope * (params.share * token.row_weights), loss, select(0.0, phi, first));
}
