// Shared by the policy losses that are functions of their own token.

struct TokenLoss {
    loss: f32,
    // its derivative with respect to the log-probability
    slope: f32,
    held: bool,
    held_below: bool,
    kl: f32,
}

// A token's gradient and summed terms.
struct Weighed {
    grad: f32,
    loss: f32,
    held: f32,
    held_below: f32,
    kl: f32,
}

// `weights` is the rollout weight, a constant; `row_weights` and `share` are the aggregation weight of the token.
fn weighed(t: TokenLoss, token: Inputs) -> Weighed {
    let loss = t.loss * token.weights;
    let grad = t.slope * token.weights * (params.share * token.row_weights);
    return Weighed(grad, loss * token.row_weights, f32(t.held), f32(t.held_below), t.kl);
}

struct Ratio {
    ratio: f32,
    // the log-ratio after the bound
    log_ratio: f32,
    // strictly beyond the bound, where the gradient is 0
    beyond: bool,
}

fn bounded_ratio(log_ratio: f32, bound: f32) -> Ratio {
    let bounded = clamp(log_ratio, -bound, bound);
    return Ratio(own_exp(bounded), bounded, log_ratio > bound || log_ratio < -bound);
}
