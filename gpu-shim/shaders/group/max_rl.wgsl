const SINGLETON_RAW: u32 = 1u;

fn formula(token: Inputs) -> Outputs {
    if (token.sizes < 2.0) {
        poisoned = params.singleton > SINGLETON_RAW;
        return Outputs(select(0.0, token.scores, params.singleton == SINGLETON_RAW));
    }
    let mean = token.sums / token.sizes;
    if (token.centred == 0.0 || (params.if_positive != 0u && mean <= 0.0)) {
        return Outputs(0.0);
    }
    return Outputs(token.centred / (mean + params.epsilon));
}
