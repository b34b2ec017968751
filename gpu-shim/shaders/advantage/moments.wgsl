// The mean from the record of a sum over `count` tokens.
fn recorded_mean(hi: u32, lo: u32) -> Pair {
    return pair_over(Pair(bitcast<f32>(hi), bitcast<f32>(lo)), params.count);
}
