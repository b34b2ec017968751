//! The dual game and its token weights.

use tokenwise::{
    loss::{self, *},
    Groups,
};

use crate::errors::{Call, Ended, AT_LEAST_1, FINITE, NOT_NEGATIVE, POSITIVE, SEQUENCES, TOKENS};

pub(super) fn token_weights(call: &mut Call) -> Ended {
    let [log_probs, reference, advantages, given] =
        ["log_probs", "ref_log_probs", "advantages", "weight"].map(|name| call.input(name, TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = TokenWeightInput {
        log_probs: &log_probs,
        ref_log_probs: Some(&reference),
        advantages: &advantages,
        weight: TokenWeight::Structural(&given),
    };
    Ended::new(loss::token_weights(&call.batch(), input, &mut out)).with(&out)
}

pub(super) fn advantage_jump(call: &mut Call) -> Ended {
    let advantages = call.input("advantages", TOKENS);
    let mut out = call.output("out", TOKENS);
    Ended::new(loss::advantage_jump(&call.batch(), &advantages, &mut out)).with(&out)
}

/// `complexity` is the name of a slice and of a factor.
pub(super) fn structural_weights(call: &mut Call) -> Ended {
    let [log_probs, advantages, complexity] =
        ["log_probs", "advantages", "complexity"].map(|name| call.input(name, TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = StructuralInput { log_probs: &log_probs, advantages: &advantages, complexity: &complexity };
    let config = StructuralConfig {
        complexity: call.number("complexity", FINITE),
        surprisal: call.number("surprisal", FINITE),
        drift: call.number("drift", FINITE),
        ..Default::default()
    };
    Ended::new(loss::structural_weights(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn trie_complexity(call: &mut Call) -> Ended {
    let (tokens, rewards) = (call.whole("tokens", TOKENS), call.input("rewards", TOKENS));
    // no output: whatever is in it does not matter
    let mut scratch = vec![TrieScratch::default(); call.input("scratch", SEQUENCES).len()];
    let mut out = call.output("out", TOKENS);
    let config =
        TrieConfig { min_branch_size: call.number("min_branch_size", AT_LEAST_1) as usize, ..Default::default() };
    let input = TrieInput { tokens: &tokens, rewards: &rewards };
    let groups = Groups::from_ids(&[0, 0]).unwrap();
    Ended::new(loss::trie_complexity(&call.batch(), &groups, input, &config, &mut scratch, &mut out)).with(&out)
}

pub(super) fn dual_game(call: &mut Call) -> Ended {
    let [new, old, advantages, omegas, reference, given] =
        ["log_probs", "old_log_probs", "advantages", "weights", "ref_log_probs", "weight"]
            .map(|name| call.input(name, TOKENS));
    let mut grad = call.output("grad", TOKENS);
    let input = DualGameInput {
        policy: PolicyLossInput {
            log_probs: &new,
            old_log_probs: &old,
            advantages: &advantages,
            weights: Some(&omegas),
        },
        ref_log_probs: Some(&reference),
        weight: TokenWeight::Structural(&given),
    };
    let config = DualGameConfig {
        gamma: call.number("gamma", NOT_NEGATIVE),
        lambda: call.number("lambda", NOT_NEGATIVE),
        beta: call.number("beta", NOT_NEGATIVE),
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        log_ratio_bound: Some(call.number("log_ratio_bound", POSITIVE)),
        ..Default::default()
    };
    Ended::new(loss::dual_game(&call.batch(), input, &config, &mut grad)).with(&grad)
}
