fn formula(token: Inputs) -> Outputs {
    let statistic = token.totals / select(1.0, token.counts, params.mean != 0u);
    return Outputs(select(0.0, token.earlier, statistic >= params.lower && statistic <= params.upper));
}
