fn formula(token: Inputs) -> Outputs {
    let rest = token.rests / token.sizes;
    let variance = max(token.squares / token.sizes - rest * rest, 0.0);
    return Outputs((token.centred - rest) / own_sqrt(max(variance, params.floor)));
}
