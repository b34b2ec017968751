//! Weights, rejections and masks around a rollout.

use tokenwise::{
    rollout::{self, *},
    Divisor, Groups, Moments, Result,
};

use crate::errors::{Call, Domain, Ended, FINITE, INF, NAN, NOT_NEGATIVE, POSITIVE, SEQUENCES, TOKENS, UNIT};

const NOT_BELOW_LOWER: &Domain =
    &Domain { must_be: "positive and not below lower", good: &[INF, 3.0], bad: &[1.0, 0.0, -1.0, NAN, -INF] };
const AT_LEAST: &Domain =
    &Domain { must_be: "finite and not negative", good: &[0.0, 1e-4], bad: &[-1e-9, NAN, INF, -INF] };
const FROM_LOWER: &Domain = &Domain { must_be: "not below lower", good: &[INF, 2.0], bad: &[-1.0, NAN, -INF] };
const FINITE_NOT_BELOW: &Domain =
    &Domain { must_be: "finite and not below lower", good: &[1e9, 2e9], bad: &[0.0, NAN, INF, -INF] };

/// A mask is not to be touched by a call that is refused; in one that is not, any of it may stay as it was.
pub(super) fn masked(result: Result<()>, keep: &[bool]) -> Ended {
    let refused = result.is_err();
    let ended = Ended::new(result);
    if refused {
        ended.with(keep)
    } else {
        ended
    }
}

fn log_probs(call: &mut Call) -> [Vec<f64>; 2] {
    ["old_log_probs", "rollout_log_probs"].map(|name| call.input(name, TOKENS))
}

fn input([old_log_probs, rollout_log_probs]: &[Vec<f64>; 2]) -> RolloutInput<'_, f64> {
    RolloutInput { old_log_probs, rollout_log_probs }
}

fn config(call: &mut Call) -> RolloutConfig {
    let (lower, upper) = (call.number("lower", NOT_NEGATIVE), call.number("upper", NOT_BELOW_LOWER));
    RolloutConfig {
        bound: WeightBound::Clamp { lower, upper },
        log_bound: LogBound::At(call.number("log_bound", POSITIVE)),
        ..Default::default()
    }
}

fn weighted(call: &mut Call, normalize: BatchNormalize) -> Ended {
    let (log_probs, mut weights) = (log_probs(call), call.output("weights", TOKENS));
    let config = RolloutConfig { normalize, ..config(call) };
    Ended::new(rollout::rollout_weights(&call.batch(), input(&log_probs), &config, &mut weights)).with(&weights)
}

pub(super) fn rollout_weights(call: &mut Call) -> Ended {
    weighted(call, BatchNormalize::Off)
}

pub(super) fn rollout_weights_normalized(call: &mut Call) -> Ended {
    weighted(call, BatchNormalize::ByLevel)
}

pub(super) fn rollout_weights_truncated(call: &mut Call) -> Ended {
    let (log_probs, mut weights) = (log_probs(call), call.output("weights", TOKENS));
    let bound = WeightBound::Truncate { upper: call.number("upper", POSITIVE) };
    let config = RolloutConfig { bound, ..Default::default() };
    Ended::new(rollout::rollout_weights(&call.batch(), input(&log_probs), &config, &mut weights)).with(&weights)
}

pub(super) fn rollout_weight_metrics(call: &mut Call) -> Ended {
    let (log_probs, config) = (log_probs(call), config(call));
    Ended::new(rollout::rollout_weight_metrics(&call.batch(), input(&log_probs), &config))
}

pub(super) fn rollout_rejection(call: &mut Call) -> Ended {
    let (log_probs, mut keep) = (log_probs(call), call.output::<bool>("keep", TOKENS));
    let config = RejectionConfig { criteria: &[Criterion::default()], ..Default::default() };
    let result = rollout::rollout_rejection(&call.batch(), input(&log_probs), &config, &mut keep);
    masked(result, &keep)
}

pub(super) fn rollout_rejection_metrics(call: &mut Call) -> Ended {
    let log_probs = log_probs(call);
    let mut metrics = vec![CriterionMetrics::default(); call.output::<f64>("per_criterion", 1).len()];
    let config = RejectionConfig { criteria: &[Criterion::default()], ..Default::default() };
    Ended::new(rollout::rollout_rejection_metrics(&call.batch(), input(&log_probs), &config, &mut metrics))
}

pub(super) fn rollout_mismatch(call: &mut Call) -> Ended {
    let log_probs = log_probs(call);
    Ended::new(rollout::rollout_mismatch(&call.batch(), input(&log_probs), Divisor::Count))
}

/// What is wrong with a text is tested apart: it has no slice whose length could be.
pub(super) fn parse_rejection(_: &mut Call) -> Ended {
    Ended::new(rollout::parse_rejection("token_k1", "2", &mut [Criterion::default()]))
}

pub(super) fn parse_weight_bound(_: &mut Call) -> Ended {
    Ended::new(rollout::parse_weight_bound("2"))
}

pub(super) fn rollout_gate(call: &mut Call) -> Ended {
    let (log_probs, mut weights) = (log_probs(call), call.output("weights", TOKENS));
    let (lower, upper) = (call.number("lower", FINITE), call.number("upper", FINITE_NOT_BELOW));
    let config = GateConfig { level: GateLevel::Token, lower, upper, ..Default::default() };
    Ended::new(rollout::rollout_gate(&call.batch(), input(&log_probs), &config, &mut weights)).with(&weights)
}

pub(super) fn off_policy_sequence_mask(call: &mut Call) -> Ended {
    let [new, old, advantages] = ["log_probs", "old_log_probs", "advantages"].map(|name| call.input(name, TOKENS));
    let mut keep = call.output::<bool>("keep", TOKENS);
    let config = OffPolicyConfig { threshold: call.number("threshold", NOT_NEGATIVE), ..Default::default() };
    let input = OffPolicyInput { log_probs: &new, old_log_probs: &old, advantages: &advantages };
    let result = rollout::off_policy_sequence_mask(&call.batch(), input, &config, &mut keep);
    masked(result, &keep)
}

pub(super) fn kl_mask(call: &mut Call) -> Ended {
    let (log_probs, mut keep) = (log_probs(call), call.output::<bool>("keep", TOKENS));
    let tau = call.number("tau", NOT_NEGATIVE);
    let result = rollout::kl_mask(&call.batch(), input(&log_probs), tau, &mut keep);
    masked(result, &keep)
}

pub(super) fn sequence_veto(call: &mut Call) -> Ended {
    let (log_probs, mut keep) = (log_probs(call), call.output::<bool>("keep", TOKENS));
    let config = VetoConfig { lower: call.number("lower", AT_LEAST), upper: call.number("upper", FROM_LOWER) };
    let result = rollout::sequence_veto(&call.batch(), input(&log_probs), &config, &mut keep);
    masked(result, &keep)
}

pub(super) fn m2po_mask(call: &mut Call) -> Ended {
    let (log_probs, kept) = (log_probs(call), call.batch().kept());
    let (mut scratch, mut keep) = (call.output::<f64>("scratch", kept), call.output::<bool>("keep", TOKENS));
    let tau = call.number("tau", POSITIVE);
    let result = rollout::m2po_mask(&call.batch(), input(&log_probs), tau, &mut scratch, &mut keep);
    masked(result, &keep).with(&scratch)
}

pub(super) fn high_entropy_mask(call: &mut Call) -> Ended {
    let (entropies, mut keep) = (call.input("entropies", TOKENS), call.output::<bool>("keep", TOKENS));
    let share = call.number("share", UNIT);
    let result = rollout::high_entropy_mask(&call.batch(), &entropies, share, &mut keep);
    masked(result, &keep)
}

pub(super) fn probability_difference(call: &mut Call) -> Ended {
    let log_probs = log_probs(call);
    Ended::new(rollout::probability_difference(&call.batch(), input(&log_probs)))
}

pub(super) fn response_mask_from_eos(call: &mut Call) -> Ended {
    let (tokens, mut keep) = (call.whole("tokens", TOKENS), call.output::<bool>("keep", TOKENS));
    let result = rollout::response_mask_from_eos(&call.batch().layout(), &tokens, &[7], &mut keep);
    masked(result, &keep)
}

pub(super) fn dynamic_sampling_filter(call: &mut Call) -> Ended {
    let (scores, mut scratch) = (call.input("scores", SEQUENCES), call.output::<Moments>("scratch", 1));
    let mut keep = call.output::<bool>("keep", 1);
    let rule = GroupRule::Spread { at_least: call.number("at_least", NOT_NEGATIVE) };
    let groups = Groups::from_ids(&[0, 0]).unwrap();
    let result = rollout::dynamic_sampling_filter(&groups, &scores, &rule, &mut scratch, &mut keep);
    masked(result, &keep).with(&scratch)
}

pub(super) fn pf_ppo_weights(call: &mut Call) -> Ended {
    // the scores say how many sequences there are, so their own number cannot be wrong
    let mut weights = call.output("weights", SEQUENCES);
    let rule = PfPpoRule::Power { power: call.number("power", NOT_NEGATIVE) };
    Ended::new(rollout::pf_ppo_weights(&[0.5; SEQUENCES], &rule, &mut weights)).with(&weights)
}

pub(super) fn pf_ppo_indices(call: &mut Call) -> Ended {
    let mut scratch = call.output("scratch", SEQUENCES);
    Ended::new(rollout::pf_ppo_indices(&[0.5; SEQUENCES], 1, &mut scratch, &mut [0; 3])).with(&scratch)
}
