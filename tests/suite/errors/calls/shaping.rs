//! Scores with penalties, numbers of sequences, and the weighted KL.

use tokenwise::{
    divergence::{self, *},
    metric::{self, *},
    reward::{self, *},
    Divisor, Groups,
};

use crate::errors::{
    Call, Domain, Ended, AT_LEAST_1, FINITE, INF, NAN, NOT_NEGATIVE, POSITIVE, SEQUENCES, TOKENS, UNIT,
};

const AT_MOST_1: &Domain =
    &Domain { must_be: "finite and at most 1", good: &[1.0, 0.0, -2.0, 0.5], bad: &[1.000_1, NAN, INF, -INF] };
const NOT_POSITIVE: &Domain =
    &Domain { must_be: "finite and not positive", good: &[0.0, -0.0, -1.0], bad: &[1e-300, NAN, INF, -INF] };
const NOT_BELOW_LOW: &Domain = &Domain { must_be: "not below low", good: &[0.0, INF, 20.0], bad: &[-1.0, NAN, -INF] };

pub(super) fn kl_importance_weighted(call: &mut Call) -> Ended {
    let [new, reference, old] = ["log_probs", "ref_log_probs", "old_log_probs"].map(|name| call.input(name, TOKENS));
    let mut out = call.output("out", TOKENS);
    let input = KlWeightedInput { log_probs: &new, ref_log_probs: &reference, old_log_probs: &old };
    let config = KlWeightedConfig::default();
    Ended::new(divergence::kl_importance_weighted(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn kl_importance_weighted_gradient(call: &mut Call) -> Ended {
    let [new, reference, old, g] =
        ["log_probs", "ref_log_probs", "old_log_probs", "grad_kl"].map(|name| call.input(name, TOKENS));
    let mut grad = call.output("grad", TOKENS);
    let input =
        KlWeightedGradientInput { log_probs: &new, ref_log_probs: &reference, old_log_probs: &old, grad_kl: &g };
    let config = KlWeightedConfig::default();
    Ended::new(divergence::kl_importance_weighted_gradient(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn kl_in_scores(call: &mut Call) -> Ended {
    let (scores, mut out) = (call.input("scores", SEQUENCES), call.output("out", SEQUENCES));
    let (old, reference) = (call.input("old_log_probs", TOKENS), call.input("ref_log_probs", TOKENS));
    let input = KlInScoresInput { scores: &scores, old_log_probs: &old, ref_log_probs: &reference };
    let beta = call.number("beta", FINITE);
    Ended::new(reward::kl_in_scores(&call.batch(), input, beta, &mut out)).with(&out)
}

pub(super) fn clipped_rewards(call: &mut Call) -> Ended {
    let (scores, kl) = (call.input("scores", SEQUENCES), call.input("kl", TOKENS));
    let mut rewards = call.output("rewards", TOKENS);
    let (beta, high) = (call.number("beta", FINITE), call.number("high", NOT_BELOW_LOW));
    let input = ClippedRewardsInput { scores: &scores, kl: &kl };
    let config = ClippedRewardsConfig { beta, low: 0.0, high };
    Ended::new(reward::clipped_rewards(&call.batch(), input, &config, &mut rewards)).with(&rewards)
}

// in these the scores say how many sequences there are, so their own number cannot be wrong

pub(super) fn stop_properly_penalty(call: &mut Call) -> Ended {
    let truncated: Vec<bool> = call.input("truncated", SEQUENCES).iter().map(|&x| x > 0.3).collect();
    let (mut out, coefficient) = (call.output("out", SEQUENCES), call.number("coefficient", AT_MOST_1));
    let input = TruncatedInput { scores: &[0.5; SEQUENCES], truncated: &truncated };
    Ended::new(reward::stop_properly_penalty(input, coefficient, &mut out)).with(&out)
}

pub(super) fn missing_eos_penalty(call: &mut Call) -> Ended {
    let ended: Vec<bool> = call.input("ended", SEQUENCES).iter().map(|&x| x > 0.3).collect();
    let (mut out, penalty) = (call.output("out", SEQUENCES), call.number("penalty", FINITE));
    let input = MissingEosInput { scores: &[0.5; SEQUENCES], ended: &ended };
    Ended::new(reward::missing_eos_penalty(input, penalty, &mut out)).with(&out)
}

pub(super) fn reward_scale_clip(call: &mut Call) -> Ended {
    let mut out = call.output("out", SEQUENCES);
    let (bias, scale) = (call.number("bias", FINITE), call.number("scale", FINITE));
    let scale = RewardScale::ShiftScaleClip { bias, scale, bound: call.number("high", NOT_BELOW_LOW) };
    Ended::new(reward::reward_scale_clip(&[0.5; SEQUENCES], &scale, &mut out)).with(&out)
}

pub(super) fn repetition_penalty(call: &mut Call) -> Ended {
    let (tokens, mut out) = (call.whole("tokens", TOKENS), call.output("out", SEQUENCES));
    let ngram = call.number("ngram", AT_LEAST_1) as usize;
    let config = RepetitionConfig { ngram, penalty: call.number("penalty", NOT_POSITIVE) };
    Ended::new(reward::repetition_penalty::<f64>(&call.batch(), &tokens, &config, &mut out)).with(&out)
}

pub(super) fn length_penalty_group(call: &mut Call) -> Ended {
    let (scores, mut out) = (call.input("scores", SEQUENCES), call.output("out", SEQUENCES));
    let [outputs, inputs, turns] = ["outputs", "inputs", "turns"].map(|name| call.whole(name, SEQUENCES));
    let config = GroupLengthConfig {
        output_weight: call.number("output_weight", FINITE),
        input_weight: call.number("input_weight", FINITE),
        turn_weight: call.number("turn_weight", FINITE),
    };
    let input = GroupLengthInput { scores: &scores, outputs: &outputs, inputs: &inputs, turns: &turns };
    let groups = Groups::from_ids(&[0, 0]).unwrap();
    Ended::new(reward::length_penalty_group(&groups, input, &config, &mut out)).with(&out)
}

pub(super) fn row_sums(call: &mut Call) -> Ended {
    let (values, mut out) = (call.input("values", TOKENS), call.output("out", SEQUENCES));
    Ended::new(metric::row_sums(&call.batch(), &values, &mut out)).with(&out)
}

pub(super) fn row_means(call: &mut Call) -> Ended {
    let (values, mut out) = (call.input("values", TOKENS), call.output("out", SEQUENCES));
    Ended::new(metric::row_means(&call.batch(), &values, Divisor::Count, &mut out)).with(&out)
}

pub(super) fn row_normalize(call: &mut Call) -> Ended {
    let (values, mut out) = (call.input("values", TOKENS), call.output("out", TOKENS));
    let floor = call.number("floor", POSITIVE);
    Ended::new(metric::row_normalize(&call.batch(), &values, floor, &mut out)).with(&out)
}

pub(super) fn quantile(call: &mut Call) -> Ended {
    let (values, level) = (call.input("values", TOKENS), call.number("level", UNIT));
    Ended::new(metric::quantile(&call.batch(), &values, level))
}

pub(super) fn effective_sample_size(call: &mut Call) -> Ended {
    let weights = call.input("weights", TOKENS);
    Ended::new(metric::effective_sample_size(&call.batch(), &weights))
}

pub(super) fn variance_proxy(call: &mut Call) -> Ended {
    let [old, squares, advantages, weights] =
        ["old_log_probs", "sum_pi_squared", "advantages", "weights"].map(|name| call.input(name, TOKENS));
    let input = VarianceProxyInput {
        old_log_probs: &old,
        sum_pi_squared: &squares,
        advantages: &advantages,
        weights: Some(&weights),
    };
    let norm = call.number("gradient_norm", NOT_NEGATIVE);
    Ended::new(metric::variance_proxy(&call.batch(), input, norm, Divisor::Count))
}
