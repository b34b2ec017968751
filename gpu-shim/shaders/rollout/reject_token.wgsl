fn formula(token: Inputs) -> Outputs {
    let statistic = rejection_statistic(token);
    return Outputs(select(0.0, token.earlier, statistic >= params.lower && statistic <= params.upper));
}
