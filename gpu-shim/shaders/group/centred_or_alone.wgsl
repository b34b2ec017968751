const SINGLETON_RAW: u32 = 1u;

fn formula(token: Inputs) -> Outputs {
    if (token.sizes < 2.0) {
        poisoned = params.singleton > SINGLETON_RAW;
        return Outputs(select(0.0, token.scores, params.singleton == SINGLETON_RAW));
    }
    return Outputs(token.centred);
}
