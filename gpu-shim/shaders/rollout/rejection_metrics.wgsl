fn formula(token: Inputs) -> Outputs {
    let s = rejection_statistic(token);
    let held = clamp(s, params.floor, params.upper);
    // exact: the variance is a difference of nearly equal sums
    let square = pair_product(held, held);
    let dropped = select(1.0, 0.0, s >= params.lower && s <= params.upper);
    let high = f32(s > params.upper);
    let low = f32(s < params.lower);
    return Outputs(s, dropped, s, held, square.hi, square.lo, high, low, dropped);
}
