// Estimates times an importance weight. `ratios` is the weight of the sequence.

const WEIGHT_TOKEN: u32 = 0u;
const WEIGHT_SEQUENCE: u32 = 1u;
const WEIGHT_TOKEN_BOUNDED: u32 = 2u;
const WEIGHT_SCORE_FUNCTION: u32 = 3u;

// slime's bound on the product
const MOST_PRODUCT: f32 = 10.0;

fn importance(token: Inputs) -> f32 {
    if (params.weight == WEIGHT_SEQUENCE) {
        return token.ratios;
    }
    if (params.weight == WEIGHT_SCORE_FUNCTION) {
        return 1.0;
    }
    return own_exp(token.log_probs - token.old_log_probs);
}
