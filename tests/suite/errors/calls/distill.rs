//! Losses that draw a student to a teacher.

use tokenwise::{
    divergence::KlInput,
    loss::{self, *},
    policy::{self, *},
    rollout::*,
};

use super::rollout::masked;
use crate::errors::{Call, Domain, Ended, ABOVE_1, AT_LEAST_1, FINITE, NOT_NEGATIVE, POSITIVE, TOKENS, UNIT};

const NEGATIVE: &Domain = &Domain {
    must_be: "negative",
    good: &[-1e-3, f64::NEG_INFINITY, -10.0],
    bad: &[0.0, -0.0, 1.0, f64::NAN, f64::INFINITY],
};

/// Entries a token; there is one.
fn k(call: &mut Call) -> usize {
    call.number("k", AT_LEAST_1) as usize
}

pub(super) fn topk_log_probs(call: &mut Call) -> Ended {
    let (vocab, k) = (call.number("vocab", AT_LEAST_1) as usize, k(call));
    let config = PolicyConfig { temperature: call.number("temperature", POSITIVE) };
    let (logits, tokens) = (call.input("logits", TOKENS), call.whole("tokens", TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = TopKLogitsInput { logits: &logits, vocab, tokens: &tokens, k };
    Ended::new(policy::topk_log_probs(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn topk_logits_gradient(call: &mut Call) -> Ended {
    let (vocab, k) = (call.number("vocab", AT_LEAST_1) as usize, k(call));
    let config = PolicyConfig { temperature: call.number("temperature", POSITIVE) };
    let (logits, tokens) = (call.input("logits", TOKENS), call.whole("tokens", TOKENS));
    let (g, mut out) = (call.input("grad_log_probs", TOKENS), call.output("grad_logits", TOKENS));
    let input = TopKGradientInput { logits: &logits, vocab, tokens: &tokens, k, grad_log_probs: &g };
    Ended::new(policy::topk_logits_gradient(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn kl_loss(call: &mut Call) -> Ended {
    let (p, q) = (call.input("log_probs", TOKENS), call.input("ref_log_probs", TOKENS));
    let (mut grad, coefficient) = (call.output("grad", TOKENS), call.number("coefficient", FINITE));
    let input = KlInput { log_probs: &p, ref_log_probs: &q };
    let config = KlLossConfig { coefficient, ..Default::default() };
    Ended::new(loss::kl_loss(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn opd_loss(call: &mut Call) -> Ended {
    let [new, old, teacher, weights] =
        ["log_probs", "old_log_probs", "teacher_log_probs", "weights"].map(|name| call.input(name, TOKENS));
    let mut grad = call.output("grad", TOKENS);
    let config = OpdLossConfig {
        max_loss: Some(call.number("max_loss", POSITIVE)),
        coefficient: call.number("coefficient", FINITE),
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        dual_clip: DualClip::NegativeOnly(call.number("dual_clip", ABOVE_1)),
        log_ratio_bound: Some(call.number("log_ratio_bound", POSITIVE)),
        ..Default::default()
    };
    let input =
        OpdLossInput { log_probs: &new, old_log_probs: &old, teacher_log_probs: &teacher, weights: Some(&weights) };
    Ended::new(loss::opd_loss(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn ref_kl(call: &mut Call) -> Ended {
    let [new, old, reference, weights] =
        ["log_probs", "old_log_probs", "ref_log_probs", "weights"].map(|name| call.input(name, TOKENS));
    let mut grad = call.output("grad", TOKENS);
    let (fall, drift) = (call.number("fall", NOT_NEGATIVE), call.number("drift", NOT_NEGATIVE));
    let config = RefKlConfig { fall, drift, aggregate: Aggregate::default() };
    let input = RefKlInput { log_probs: &new, old_log_probs: &old, ref_log_probs: &reference, weights: Some(&weights) };
    Ended::new(loss::ref_kl(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn iw_opd(call: &mut Call) -> Ended {
    let [new, old, teacher] = ["log_probs", "old_log_probs", "teacher_log_probs"].map(|name| call.input(name, TOKENS));
    let mut grad = call.output("grad", TOKENS);
    let (gamma, epsilon) = (call.number("gamma", NOT_NEGATIVE), call.number("epsilon", POSITIVE));
    let config = IwOpdConfig { gamma, epsilon, aggregate: Aggregate::default() };
    let input = IwOpdInput { log_probs: &new, old_log_probs: &old, teacher_log_probs: &teacher };
    Ended::new(loss::iw_opd(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn forward_kl_topk(call: &mut Call) -> Ended {
    let k = k(call);
    let (s, t) = (call.input("log_probs", TOKENS), call.input("teacher_log_probs", TOKENS));
    let (teacher, student) = (call.whole("teacher", TOKENS), call.whole("student", TOKENS));
    let (mut losses, mut grad) = (call.output("losses", TOKENS), call.output("grad", TOKENS));
    let config = ForwardKlTopKConfig {
        log_prob_floor: Some(call.number("log_prob_floor", NEGATIVE)),
        max_loss: Some(call.number("max_loss", POSITIVE)),
        ..Default::default()
    };
    let ids = Some(TopKIds { teacher: &teacher, student: &student });
    let input = ForwardKlTopKInput { log_probs: &s, teacher_log_probs: &t, k, ids };
    let output = ForwardKlTopKOutput { losses: &mut losses, grad: &mut grad };
    let result = loss::forward_kl_topk(&call.batch(), input, &config, output);
    Ended::new(result).with(&losses).with(&grad)
}

pub(super) fn topk_jsd(call: &mut Call) -> Ended {
    let k = k(call);
    let (s, t) = (call.input("log_probs", TOKENS), call.input("teacher_log_probs", TOKENS));
    let (weights, mut grad) = (call.input("weights", TOKENS), call.output("grad", TOKENS));
    let config = TopKJsdConfig { beta: call.number("beta", UNIT), ..Default::default() };
    let input = TopKInput { log_probs: &s, teacher_log_probs: &t, k, weights: Some(&weights) };
    Ended::new(loss::topk_jsd(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn mixed_kl_topk(call: &mut Call) -> Ended {
    let k = k(call);
    let (s, t) = (call.input("log_probs", TOKENS), call.input("teacher_log_probs", TOKENS));
    let entropies = call.input("entropies", TOKENS);
    let (mut grad, mut grad_entropies) = (call.output("grad", TOKENS), call.output("grad_entropies", TOKENS));
    let forward = call.number("forward", UNIT);
    let outside = OutsideTopK::LogProb(call.number("log_prob", FINITE));
    let config = MixedKlConfig { forward, outside, ..Default::default() };
    let input = MixedKlInput { log_probs: &s, teacher_log_probs: &t, k, entropies: &entropies };
    let output = MixedKlOutput { grad: &mut grad, grad_entropies: &mut grad_entropies };
    let result = loss::mixed_kl_topk(&call.batch(), input, &config, output);
    Ended::new(result).with(&grad).with(&grad_entropies)
}

pub(super) fn generalized_jsd(call: &mut Call) -> Ended {
    let vocab = call.number("vocab", AT_LEAST_1) as usize;
    let (logits, teacher_logits) = (call.input("logits", TOKENS), call.input("teacher_logits", TOKENS));
    let (weights, mut grad) = (call.input("weights", TOKENS), call.output("grad_logits", TOKENS));
    let config = JsdConfig {
        beta: call.number("beta", UNIT),
        temperature: call.number("temperature", POSITIVE),
        ..Default::default()
    };
    let input = JsdInput { logits: &logits, teacher_logits: &teacher_logits, vocab, weights: Some(&weights) };
    Ended::new(loss::generalized_jsd(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn bypass_loss(call: &mut Call) -> Ended {
    let [new, old, advantages] = ["log_probs", "old_log_probs", "advantages"].map(|name| call.input(name, TOKENS));
    let (mut weights, mut grad) = (call.output("weights", TOKENS), call.output("grad", TOKENS));
    let mut keep = call.output::<bool>("keep", TOKENS);
    let mut per_criterion = vec![CriterionMetrics::default(); call.output::<f64>("per_criterion", 1).len()];
    let bound = WeightBound::Truncate { upper: call.number("upper", POSITIVE) };
    let form = PpoConfig { clip_low: call.number("clip_low", NOT_NEGATIVE), ..Default::default() };
    let config = BypassConfig {
        weights: Some(RolloutConfig { bound, ..Default::default() }),
        rejection: RejectionConfig { criteria: &[Criterion::default()], ..Default::default() },
        form: BypassForm::PpoClip(form),
        ..Default::default()
    };
    let input = PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: None };
    let output =
        BypassOutput { weights: &mut weights, keep: &mut keep, per_criterion: &mut per_criterion, grad: &mut grad };
    let result = loss::bypass_loss(&call.batch(), input, &config, output);
    masked(result.map(|_| ()), &keep).with(&weights).with(&grad)
}
