//! All that a framework logs.

use tokenwise::{
    loss::{DualClip, PolicyLoss, ValueLoss},
    metric::{
        self, KlUse, Lengths, OpenRlhfConfig, OpenRlhfInput, OpenRlhfMetrics, RewardKl, RewardSource, TrlConfig,
        TrlInput, TrlLevel, TrlMetrics, TrlOutput, TrlRewards, TrlScale, VerlConfig, VerlInput, VerlMetrics,
    },
    rollout::{CriterionMetrics, RejectionConfig, RolloutConfig},
    Moments,
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
    rollout::CRITERIA,
};

/// Longer than there are sequences.
const LENGTHS: [u32; 9] = [3, 0, 1, 7, 2, 0, 3, 5, 3];
const CUT: [bool; 9] = [true, false, false, true, false, true, false, false, true];
const POLICY: PolicyLoss = PolicyLoss { loss: 0.3, clip_fraction: 0.1, clip_fraction_lower: 0.0, kl: 0.01 };
const VALUE: ValueLoss = ValueLoss { loss: 0.7, clip_fraction: 0.2 };

// the names go in too: they say which entries there are

impl Hashed for VerlMetrics<'_> {
    fn add_to(&self, hash: &mut Hash) {
        self.entries().for_each(|entry| entry.add_to(hash));
    }
}

impl Hashed for TrlMetrics<'_> {
    fn add_to(&self, hash: &mut Hash) {
        self.entries().for_each(|entry| entry.add_to(hash));
        self.sources.iter().for_each(|source| hash.add(&[source.mean, source.std]));
    }
}

impl Hashed for OpenRlhfMetrics {
    fn add_to(&self, hash: &mut Hash) {
        self.entries().for_each(|entry| entry.add_to(hash));
    }
}

pub(crate) fn verl_metrics<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let lengths = Some(Lengths { tokens: &LENGTHS[..case.batch.sequences()], limit: 3 });
    let all = VerlInput {
        scores: Some(case.rewards),
        rewards: Some(case.rewards),
        advantages: Some(case.advantages),
        returns: Some(case.rewards),
        values: Some(case.values),
        predictions: Some(case.values),
        response_lengths: lengths,
        prompt_lengths: lengths,
        log_probs: Some(case.log_probs),
        ref_log_probs: Some(case.ref_log_probs),
        old_log_probs: Some(case.old_log_probs),
        rollout_log_probs: Some(case.ref_log_probs),
        old_entropies: Some(case.weights),
        entropies: Some(case.weights),
        sum_pi_squared: Some(case.weights),
        gradient_norm: Some(0.5),
        policy_loss: Some(POLICY),
        value_loss: Some(VALUE),
        reward_kl: Some(RewardKl { kl: 0.1, coefficient: 0.2 }),
        ..Default::default()
    };
    let without_sampler = VerlInput { rollout_log_probs: None, values: None, ..all };
    let config = VerlConfig {
        rollout_weights: Some(RolloutConfig::default()),
        rejection: Some(RejectionConfig { criteria: &CRITERIA[..2], ..Default::default() }),
        entropy_coefficient: 0.3,
        ..Default::default()
    };
    let criteria = &mut [CriterionMetrics::default(); 2];
    out.record(metric::verl_metrics(&case.batch, all, &config, criteria));
    out.record(metric::verl_metrics(&case.batch, without_sampler, &VerlConfig::default(), &mut []));
}

pub(crate) fn trl_metrics<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let sequences = case.batch.sequences();
    let input = TrlInput {
        log_probs: Some(case.log_probs),
        old_log_probs: Some(case.old_log_probs),
        ref_log_probs: Some(case.ref_log_probs),
        rollout_log_probs: Some(case.ref_log_probs),
        weights: Some(case.weights),
        advantages: Some(case.advantages),
        entropies: Some(case.weights),
        loss: None,
        rewards: Some(TrlRewards { groups: case.groups, sources: case.scores, source_weights: &[0.7] }),
        completion_lengths: Some(&LENGTHS[..sequences]),
        truncated: Some(&CUT[..sequences]),
        prompt_lengths: Some(&LENGTHS[..sequences]),
    };
    for (level, scale) in [(TrlLevel::Token, TrlScale::Group), (TrlLevel::Sequence, TrlScale::Batch)] {
        let config = TrlConfig {
            clip_low: 0.1,
            clip_high: 0.15,
            dual_clip: DualClip::BothSigns(3.0),
            level,
            weight_level: level,
            scale,
            ..Default::default()
        };
        let (per_source, scratch) = (&mut [RewardSource::default()], &mut [Moments::default(); 9]);
        let output = TrlOutput { per_source, scratch: &mut scratch[..case.groups.count()] };
        out.record(metric::trl_metrics(&case.batch, input, &config, output));
    }
}

pub(crate) fn openrlhf_metrics<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let sequences = case.batch.sequences();
    let input = OpenRlhfInput {
        log_probs: Some(case.log_probs),
        ref_log_probs: Some(case.ref_log_probs),
        entropies: Some(case.weights),
        rewards: Some(case.rewards),
        predictions: Some(case.values),
        scores: Some(case.scores),
        groups: Some(case.groups),
        total_lengths: Some(Lengths { tokens: &LENGTHS[..sequences], limit: 3 }),
        truncated: Some(&CUT[..sequences]),
        policy_loss: Some(POLICY),
        gate: None,
        value_loss: Some(VALUE),
    };
    for kl_use in [KlUse::Reward, KlUse::Loss] {
        let scratch = &mut [Moments::default(); 9][..case.groups.count()];
        let config = OpenRlhfConfig { kl_use, ..Default::default() };
        out.record(metric::openrlhf_metrics(&case.batch, input, &config, scratch));
    }
}
