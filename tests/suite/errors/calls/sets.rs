//! All that a framework logs.

use tokenwise::{
    loss::{DualClip, PolicyLoss, ValueLoss},
    metric::{self, *},
    rollout::{Criterion, CriterionMetrics, GateReport, RejectionConfig, RolloutConfig},
    Groups, Mask, Moments,
};

use super::super::{Call, Ended, ABOVE_1, FINITE, NOT_NEGATIVE, SEQUENCES, TOKENS};

pub(super) fn verl_metrics(call: &mut Call) -> Ended {
    let names = [
        "scores",
        "rewards",
        "advantages",
        "returns",
        "values",
        "predictions",
        "log_probs",
        "ref_log_probs",
        "old_log_probs",
        "rollout_log_probs",
        "old_entropies",
        "entropies",
        "sum_pi_squared",
        "weights",
    ];
    let slices = names.map(|name| call.input(name, TOKENS));
    let [scores, rewards, advantages, returns, values, predictions, new, reference, old, rollout, old_h, h, squares, weights] =
        slices.each_ref().map(|slice| Some(&slice[..]));
    let [responses, prompts] = ["response_lengths", "prompt_lengths"].map(|name| call.whole(name, SEQUENCES));
    let kept = call.batch().mask().as_slice().iter().chain(&[true; 9]);
    let mask: Vec<bool> = kept.copied().take(call.whole("mask_before_rejection", TOKENS).len()).collect();
    let input = VerlInput {
        scores,
        rewards,
        advantages,
        returns,
        values,
        predictions,
        response_lengths: Some(Lengths { tokens: &responses, limit: 3 }),
        prompt_lengths: Some(Lengths { tokens: &prompts, limit: 3 }),
        log_probs: new,
        ref_log_probs: reference,
        old_log_probs: old,
        rollout_log_probs: rollout,
        old_entropies: old_h,
        entropies: h,
        sum_pi_squared: squares,
        weights,
        gradient_norm: Some(call.number("gradient_norm", NOT_NEGATIVE)),
        policy_loss: Some(PolicyLoss::default()),
        value_loss: Some(ValueLoss::default()),
        reward_kl: Some(RewardKl::default()),
        mask_before_rejection: Some(Mask::new(&mask)),
    };
    let config = VerlConfig {
        kl_coefficient: call.number("kl_coefficient", FINITE),
        entropy_coefficient: call.number("entropy_coefficient", FINITE),
        rollout_weights: Some(RolloutConfig::default()),
        rejection: Some(RejectionConfig { criteria: &[Criterion::default()], ..Default::default() }),
        ..Default::default()
    };
    let mut criteria = vec![CriterionMetrics::default(); call.output::<f64>("per_criterion", 1).len()];
    let result = metric::verl_metrics(&call.batch(), input, &config, &mut criteria).map(|_| ());
    if result.is_err() {
        assert!(criteria.iter().all(|found| *found == CriterionMetrics::default()));
    }
    Ended::new(result)
}

pub(super) fn trl_metrics(call: &mut Call) -> Ended {
    let names =
        ["log_probs", "old_log_probs", "ref_log_probs", "rollout_log_probs", "weights", "advantages", "entropies"];
    let slices = names.map(|name| call.input(name, TOKENS));
    let [new, old, reference, rollout, weights, advantages, entropies] =
        slices.each_ref().map(|slice| Some(&slice[..]));
    let (ids, sources) = (call.whole("groups", SEQUENCES), call.input("sources", SEQUENCES));
    let [lengths, prompts] = ["completion_lengths", "prompt_lengths"].map(|name| call.whole(name, SEQUENCES));
    let truncated = vec![false; call.whole("truncated", SEQUENCES).len()];
    let source_weights = [call.number("source_weights", FINITE)];
    let input = TrlInput {
        log_probs: new,
        old_log_probs: old,
        ref_log_probs: reference,
        rollout_log_probs: rollout,
        weights,
        advantages,
        entropies,
        loss: Some(TrlLoss::Clipped(PolicyLoss::default())),
        rewards: Some(TrlRewards {
            groups: Groups::from_ids(&ids).unwrap(),
            sources: &sources,
            source_weights: &source_weights,
        }),
        completion_lengths: Some(&lengths),
        truncated: Some(&truncated),
        prompt_lengths: Some(&prompts),
    };
    let config = TrlConfig {
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        dual_clip: DualClip::BothSigns(call.number("dual_clip", ABOVE_1)),
        entropy_coefficient: Some(call.number("entropy_coefficient", FINITE)),
        ..Default::default()
    };
    let mut per_source = vec![RewardSource::default(); call.output::<f64>("per_source", 1).len()];
    let mut scratch: Vec<Moments> = call.output("scratch", 1);
    let output = TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
    let result = metric::trl_metrics(&call.batch(), input, &config, output).map(|_| ());
    Ended::new(result).with(&scratch)
}

pub(super) fn openrlhf_metrics(call: &mut Call) -> Ended {
    let names = ["log_probs", "ref_log_probs", "entropies", "rewards", "predictions"];
    let slices = names.map(|name| call.input(name, TOKENS));
    let [new, reference, entropies, rewards, predictions] = slices.each_ref().map(|slice| Some(&slice[..]));
    let (ids, scores) = (call.whole("groups", SEQUENCES), call.input("scores", SEQUENCES));
    let lengths = call.whole("total_lengths", SEQUENCES);
    let truncated = vec![false; call.whole("truncated", SEQUENCES).len()];
    let mut scratch: Vec<Moments> = call.output("scratch", 1);
    let input = OpenRlhfInput {
        log_probs: new,
        ref_log_probs: reference,
        entropies,
        rewards,
        predictions,
        scores: Some(&scores),
        groups: Some(Groups::from_ids(&ids).unwrap()),
        total_lengths: Some(Lengths { tokens: &lengths, limit: 3 }),
        truncated: Some(&truncated),
        policy_loss: Some(PolicyLoss::default()),
        gate: Some(GateReport::default()),
        value_loss: Some(ValueLoss::default()),
    };
    Ended::new(metric::openrlhf_metrics(&call.batch(), input, &OpenRlhfConfig::default(), &mut scratch)).with(&scratch)
}
