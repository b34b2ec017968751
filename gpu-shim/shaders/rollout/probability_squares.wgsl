fn formula(token: Inputs) -> Outputs {
    let p = own_exp(token.old_log_probs);
    let q = own_exp(token.rollout_log_probs);
    let mean_p = recorded_mean(sums[2], sums[3]);
    let mean_q = recorded_mean(sums[4], sums[5]);
    let mean_gap = recorded_mean(sums[6], sums[7]);
    let dp = (p - mean_p.hi) - mean_p.lo;
    let dq = (q - mean_q.hi) - mean_q.lo;
    let gap = (abs(p - q) - mean_gap.hi) - mean_gap.lo;
    return Outputs(dp, dq, dp * dp, dq * dq, dp * dq, gap, gap * gap);
}
