//! Functions that write slices.

use tokenwise::{
    advantage::{self, *},
    divergence::{self, *},
    policy::{self, *},
    reward::{self, *},
    Groups, Layout, Moments,
};

use crate::errors::{Call, Ended, AT_LEAST_1, FINITE, NOT_NEGATIVE, POSITIVE, SEQUENCES, TOKENS, UNIT};

/// Size of the vocabulary and its config.
fn vocabulary(call: &mut Call) -> (usize, PolicyConfig) {
    (call.number("vocab", AT_LEAST_1) as usize, PolicyConfig { temperature: call.number("temperature", POSITIVE) })
}

pub(super) fn log_probs_and_entropy(call: &mut Call) -> Ended {
    let (vocab, config) = vocabulary(call);
    let (logits, tokens) = (call.input("logits", TOKENS), call.whole("tokens", TOKENS));
    let (mut log_probs, mut entropy) = (call.output("log_probs", TOKENS), call.output("entropy", TOKENS));
    let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
    let input = LogProbInput { logits: &logits, vocab, tokens: &tokens };
    let result = policy::log_probs_and_entropy(&call.batch(), input, &config, output);
    Ended::new(result).with(&log_probs).with(&entropy)
}

pub(super) fn token_log_probs(call: &mut Call) -> Ended {
    let (vocab, config) = vocabulary(call);
    let (logits, tokens) = (call.input("logits", TOKENS), call.whole("tokens", TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = LogProbInput { logits: &logits, vocab, tokens: &tokens };
    Ended::new(policy::token_log_probs(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn entropy(call: &mut Call) -> Ended {
    let (vocab, config) = vocabulary(call);
    let (logits, mut out) = (call.input("logits", TOKENS), call.output("out", TOKENS));
    let input = LogitsInput { logits: &logits, vocab };
    Ended::new(policy::entropy(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn sum_squared_probs(call: &mut Call) -> Ended {
    let (vocab, config) = vocabulary(call);
    let (logits, mut out) = (call.input("logits", TOKENS), call.output("out", TOKENS));
    let input = LogitsInput { logits: &logits, vocab };
    Ended::new(policy::sum_squared_probs(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn logits_gradient(call: &mut Call) -> Ended {
    let (vocab, config) = vocabulary(call);
    let (logits, tokens) = (call.input("logits", TOKENS), call.whole("tokens", TOKENS));
    let (g, h) = (call.input("grad_log_probs", TOKENS), call.input("grad_entropy", TOKENS));
    let mut out = call.output("grad_logits", TOKENS);
    let input = LogitsGradientInput { logits: &logits, vocab, tokens: &tokens, grad_log_probs: &g, grad_entropy: &h };
    Ended::new(policy::logits_gradient(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn kl_estimate(call: &mut Call) -> Ended {
    let (p, q) = (call.input("log_probs", TOKENS), call.input("ref_log_probs", TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = KlInput { log_probs: &p, ref_log_probs: &q };
    Ended::new(divergence::kl_estimate(&call.batch(), input, &KlConfig::default(), &mut out)).with(&out)
}

pub(super) fn kl_gradient(call: &mut Call) -> Ended {
    let (p, q) = (call.input("log_probs", TOKENS), call.input("ref_log_probs", TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = KlInput { log_probs: &p, ref_log_probs: &q };
    Ended::new(divergence::kl_gradient(&call.batch(), input, &KlConfig::default(), &mut out)).with(&out)
}

pub(super) fn kl_exact(call: &mut Call) -> Ended {
    let (vocab, config) = vocabulary(call);
    let (logits, ref_logits) = (call.input("logits", TOKENS), call.input("ref_logits", TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = KlExactInput { logits: &logits, ref_logits: &ref_logits, vocab };
    Ended::new(divergence::kl_exact(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn kl_exact_gradient(call: &mut Call) -> Ended {
    let (vocab, config) = vocabulary(call);
    let (logits, ref_logits) = (call.input("logits", TOKENS), call.input("ref_logits", TOKENS));
    let (g, mut out) = (call.input("grad_kl", TOKENS), call.output("grad_logits", TOKENS));
    let input = KlExactGradientInput { logits: &logits, ref_logits: &ref_logits, vocab, grad_kl: &g };
    Ended::new(divergence::kl_exact_gradient(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn place_scores(call: &mut Call) -> Ended {
    let (scores, mut out) = (call.input("scores", SEQUENCES), call.output("out", TOKENS));
    Ended::new(reward::place_scores(&call.batch(), &scores, &mut out)).with(&out)
}

pub(super) fn shape_rewards(call: &mut Call) -> Ended {
    let (scores, kl) = (call.input("scores", TOKENS), call.input("kl", TOKENS));
    let (mut rewards, beta) = (call.output("rewards", TOKENS), call.number("beta", FINITE));
    let input = ShapeInput { scores: &scores, kl: &kl };
    Ended::new(reward::shape_rewards(&call.batch(), input, beta, &mut rewards)).with(&rewards)
}

pub(super) fn kl_in_reward(call: &mut Call) -> Ended {
    let scores = call.input("scores", TOKENS);
    let (old, reference) = (call.input("old_log_probs", TOKENS), call.input("ref_log_probs", TOKENS));
    let (mut rewards, beta) = (call.output("rewards", TOKENS), call.number("beta", FINITE));
    let input = KlInRewardInput { scores: &scores, old_log_probs: &old, ref_log_probs: &reference };
    let config = KlRewardConfig { beta, ..Default::default() };
    Ended::new(reward::kl_in_reward(&call.batch(), input, &config, &mut rewards)).with(&rewards)
}

pub(super) fn overlong_penalty(call: &mut Call) -> Ended {
    // the scores say how many sequences there are, so their own number cannot be wrong
    let (lengths, mut out) = (call.whole("lengths", SEQUENCES), call.output("out", SEQUENCES));
    let config = OverlongConfig { factor: call.number("factor", NOT_NEGATIVE), ..Default::default() };
    let input = OverlongInput { scores: &[0.5; SEQUENCES], lengths: &lengths };
    Ended::new(reward::overlong_penalty(input, &config, &mut out)).with(&out)
}

pub(super) fn discounted_returns(call: &mut Call) -> Ended {
    let (rewards, bootstrap) = (call.input("rewards", TOKENS), call.input("bootstrap", SEQUENCES));
    let mut out = call.output("out", TOKENS);
    let config = ReturnsConfig { gamma: call.number("gamma", UNIT), ..Default::default() };
    let input = ReturnsInput { rewards: &rewards, bootstrap: &bootstrap };
    Ended::new(advantage::discounted_returns(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn gae(call: &mut Call) -> Ended {
    let (rewards, values) = (call.input("rewards", TOKENS), call.input("values", TOKENS));
    let bootstrap = call.input("bootstrap", SEQUENCES);
    let (mut advantages, mut returns) = (call.output("advantages", TOKENS), call.output("returns", TOKENS));
    let (gamma, lambda) = (call.number("gamma", UNIT), call.number("lambda", UNIT));
    let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
    let result = advantage::gae(&call.batch(), input, &GaeConfig { gamma, lambda, ..Default::default() }, output);
    Ended::new(result).with(&advantages).with(&returns)
}

pub(super) fn monte_carlo_advantage(call: &mut Call) -> Ended {
    let (rewards, values) = (call.input("rewards", TOKENS), call.input("values", TOKENS));
    let bootstrap = call.input("bootstrap", SEQUENCES);
    let (mut advantages, mut returns) = (call.output("advantages", TOKENS), call.output("returns", TOKENS));
    let config = ReturnsConfig { gamma: call.number("gamma", UNIT), ..Default::default() };
    let input = MonteCarloInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let output = MonteCarloOutput { advantages: &mut advantages, returns: &mut returns };
    let result = advantage::monte_carlo_advantage(&call.batch(), input, &config, output);
    Ended::new(result).with(&advantages).with(&returns)
}

pub(super) fn uniform_credit(call: &mut Call) -> Ended {
    let (scores, mut out) = (call.input("scores", SEQUENCES), call.output("out", TOKENS));
    Ended::new(advantage::uniform_credit(&call.batch(), &scores, &mut out)).with(&out)
}

pub(super) fn last_k_credit(call: &mut Call) -> Ended {
    let (scores, mut out) = (call.input("scores", SEQUENCES), call.output("out", TOKENS));
    let k = call.number("k", AT_LEAST_1) as usize;
    Ended::new(advantage::last_k_credit(&call.batch(), &scores, k, &mut out)).with(&out)
}

pub(super) fn attention_credit(call: &mut Call) -> Ended {
    let (scores, weights) = (call.input("scores", SEQUENCES), call.input("weights", TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = AttentionInput { scores: &scores, weights: &weights };
    Ended::new(advantage::attention_credit(&call.batch(), input, &mut out)).with(&out)
}

pub(super) fn group_relative(call: &mut Call) -> Ended {
    let (scores, mut out) = (call.input("scores", 5), call.output("out", 5));
    let mut scratch = call.output::<Moments>("scratch", 3);
    let config = GroupConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let groups = Groups::from_ids(&[0, 2, 1, 0, 2]).unwrap();
    let result = advantage::group_relative(&groups, &scores, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn leave_one_out(call: &mut Call) -> Ended {
    let (scores, mut out) = (call.input("scores", 5), call.output("out", 5));
    let mut scratch = call.output::<Moments>("scratch", 2);
    let groups = Groups::contiguous(&[2, 3]).unwrap();
    let result = advantage::leave_one_out(&groups, &scores, &LeaveOneOutConfig::default(), &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn broadcast(call: &mut Call) -> Ended {
    let (values, mut out) = (call.input("values", SEQUENCES), call.output("out", TOKENS));
    Ended::new(advantage::broadcast(&call.batch(), &values, &mut out)).with(&out)
}

pub(super) fn sequence_sums(call: &mut Call) -> Ended {
    let (rewards, mut out) = (call.input("rewards", TOKENS), call.output("out", SEQUENCES));
    Ended::new(advantage::sequence_sums(&call.batch(), &rewards, &mut out)).with(&out)
}

pub(super) fn whiten(call: &mut Call) -> Ended {
    let (values, mut out) = (call.input("values", TOKENS), call.output("out", TOKENS));
    let config = WhitenConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    Ended::new(advantage::whiten(&call.batch(), &values, &config, &mut out)).with(&out)
}

pub(super) fn shift(call: &mut Call) -> Ended {
    let (raw, mut out) = (call.input("raw", 2 * 9), call.output("out", 2 * TOKENS));
    let raw_layout = Layout::packed(&[0, 4, 9]).unwrap();
    Ended::new(tokenwise::shift(&call.batch().layout(), &raw_layout, &raw, 2, &mut out)).with(&out)
}
