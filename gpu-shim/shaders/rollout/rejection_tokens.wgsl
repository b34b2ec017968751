fn formula(token: Inputs) -> Outputs {
    return Outputs(rejection_statistic(token));
}
