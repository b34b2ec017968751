// The weight of a token in the dual game, and its derivative with respect to the log-probability.

const WEIGHT_PLAIN: u32 = 0u;
const WEIGHT_KL_GATED: u32 = 1u;
const WEIGHT_STRUCTURAL: u32 = 2u;

struct TokenWeight {
    weight: f32,
    slope: f32,
}

fn token_weight(log_prob: f32, gap: f32, advantage: f32, given: f32) -> TokenWeight {
    if (params.weight == WEIGHT_STRUCTURAL) {
        return TokenWeight(given, 0.0);
    }
    let p = own_exp(log_prob);
    let weight = p * (1.0 - p) * abs(advantage);
    let slope = p * (1.0 - (p + p)) * abs(advantage);
    if (params.weight == WEIGHT_PLAIN) {
        return TokenWeight(weight, slope);
    }
    return TokenWeight(weight * abs(gap), slope * abs(gap) + weight * sign(gap));
}
