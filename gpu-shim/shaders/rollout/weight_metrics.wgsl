fn formula(token: Inputs) -> Outputs {
    let raw = raw_weight(log_ratio(token));
    let applied = applied_weight(raw);
    let held = clamp(applied, 0.0, params.band_upper);
    // exact: the variance is a difference of nearly equal sums
    let square = pair_product(held, held);
    let high = f32(raw > params.band_upper);
    let low = f32(raw < params.band_lower);
    return Outputs(raw, applied, applied, held, square.hi, square.lo, high, low);
}
