const COEFFICIENT_IMPORTANCE: u32 = 0u;
const COEFFICIENT_LAMBDA: u32 = 1u;
const COEFFICIENT_TREE_BACKUP: u32 = 2u;

fn formula(token: Inputs) -> Outputs {
    if (params.coefficient == COEFFICIENT_LAMBDA) {
        return Outputs(params.lambda);
    }
    if (params.coefficient == COEFFICIENT_TREE_BACKUP) {
        return Outputs(params.lambda * own_exp(token.log_probs));
    }
    let ratio = own_exp(token.log_probs - token.old_log_probs);
    if (params.coefficient == COEFFICIENT_IMPORTANCE) {
        return Outputs(ratio);
    }
    return Outputs(params.lambda * min(ratio, 1.0));
}
