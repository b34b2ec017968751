// A loss defines `policy_loss`.
fn formula(token: Inputs) -> Outputs {
    let sum = weighed(policy_loss(token), token);
    return Outputs(sum.grad, sum.loss, sum.held, sum.held_below, sum.kl);
}
