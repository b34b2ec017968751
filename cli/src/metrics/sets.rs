//! What each framework logs for a batch: the core's metric sets with the fields of the file.

use tokenwise::{
    loss::{
        ppo_clip, value_loss, AggregateMode, PolicyLoss, PolicyLossInput, PpoConfig, ValueConfig, ValueLoss,
        ValueLossInput,
    },
    metric::{
        openrlhf_metrics, trl_metrics, verl_metrics, Lengths, OpenRlhfConfig, OpenRlhfInput, OpenRlhfMetrics,
        RewardSource, TrlConfig, TrlInput, TrlLevel, TrlLoss, TrlMetrics, TrlOutput, TrlRewards, VerlConfig, VerlInput,
        VerlMetrics,
    },
    rollout::{rollout_gate, rollout_weights, GateConfig, GateLevel, RolloutInput, RolloutLevel},
    Batch, Error, Groups, Moments, Profile, Result,
};

use super::{inputs::Inputs, paper};
use crate::{args::Metrics, rollout::Column};

/// A key and its value.
pub(crate) type Entry = (&'static str, f64);

/// What a framework logs, in its order.
pub(crate) fn entries(inputs: &Inputs<'_>, profile: Profile, options: &Metrics) -> Result<Vec<Entry>> {
    let mut entries = logged(inputs, profile, options)?;
    entries.extend(paper::game(inputs)?);
    Ok(entries)
}

fn logged(inputs: &Inputs<'_>, profile: Profile, options: &Metrics) -> Result<Vec<Entry>> {
    match profile {
        Profile::Verl0_9_1 => {
            let limited = |(key, _): &Entry| match key.rsplit_once('/') {
                Some(("prompt_length", "clip_ratio")) => options.max_prompt.is_some(),
                Some((_, "clip_ratio")) => options.max_response.is_some(),
                _ => true,
            };
            Ok(verl(inputs, profile, options)?.entries().filter(limited).collect())
        }
        Profile::Trl1_16 => {
            let grouped = |(key, _): &Entry| inputs.groups.is_some() || *key != "frac_reward_zero_std";
            Ok(trl(inputs, profile, options)?.entries().filter(grouped).collect())
        }
        Profile::OpenRlhf0_11 => {
            let known = |(key, _): &Entry| inputs.has_tokens() || *key != "train/response_length";
            Ok(openrlhf(inputs, profile, options)?.entries().filter(known).collect())
        }
        _ => paper::entries(inputs, profile, options),
    }
}

pub(super) fn verl(inputs: &Inputs<'_>, profile: Profile, options: &Metrics) -> Result<VerlMetrics<'static>> {
    let batch = inputs.batch()?;
    let column = |column| inputs.column(column);
    let scores = inputs.token_scores();
    // verl needs a length to count a score
    let lengths = inputs.lengths.clone().unwrap_or_else(|| vec![1; batch.sequences()]);
    let limit = |most: Option<u32>| most.unwrap_or(u32::MAX);
    let sampler = sampler(inputs, &batch);
    let weights = match sampler.filter(|_| options.correct) {
        Some(sampler) => Some(weights(&batch, sampler, profile)?),
        None => None,
    };
    let input = VerlInput {
        scores: scores.as_deref(),
        rewards: column(Column::Rewards),
        advantages: column(Column::Advantages),
        returns: column(Column::Returns),
        values: column(Column::Values),
        predictions: column(Column::Predictions),
        response_lengths: Some(Lengths { tokens: &lengths, limit: limit(options.max_response) }),
        prompt_lengths: inputs.prompts.as_ref().map(|tokens| Lengths { tokens, limit: limit(options.max_prompt) }),
        log_probs: column(Column::LogProbs).or(column(Column::OldLogProbs)),
        ref_log_probs: column(Column::RefLogProbs),
        old_log_probs: column(Column::OldLogProbs),
        rollout_log_probs: sampler.map(|sampler| sampler.rollout_log_probs),
        old_entropies: column(Column::OldEntropies),
        entropies: column(Column::Entropies),
        policy_loss: policy(inputs, &batch, profile, options, weights.as_deref())?,
        value_loss: value(inputs, &batch, profile)?,
        ..Default::default()
    };
    let config = VerlConfig {
        aggregate: profile.aggregate(AggregateMode::TokenMean),
        divisor: profile.divisor(),
        kl: profile.kl_loss(),
        kl_coefficient: options.kl_coefficient.unwrap_or(VerlConfig::default().kl_coefficient),
        entropy_coefficient: options.entropy_coefficient.unwrap_or(0.0),
        rollout_weights: options.correct.then(|| profile.rollout()),
        rejection: None,
    };
    let mut found = verl_metrics(&batch, input, &config, &mut [])?;
    if inputs.lengths.is_none() {
        found.response_length = None;
        found.response_length_non_aborted = None;
        found.aborted_ratio = None;
        found.total_num_tokens = None;
    }
    Ok(found)
}

pub(super) fn trl(inputs: &Inputs<'_>, profile: Profile, options: &Metrics) -> Result<TrlMetrics<'static>> {
    let batch = inputs.batch()?;
    let column = |column| inputs.column(column);
    let sampler = sampler(inputs, &batch);
    let weights = match sampler {
        Some(sampler) => Some(weights(&batch, sampler, profile)?),
        None => None,
    };
    let ids = inputs.groups_or_alone();
    let groups = Groups::from_ids(&ids)?;
    let rewards = inputs.scores.as_ref().map(|scores| TrlRewards { groups, sources: scores, source_weights: &[1.0] });
    let input = TrlInput {
        log_probs: column(Column::LogProbs),
        old_log_probs: column(Column::OldLogProbs),
        ref_log_probs: column(Column::RefLogProbs),
        rollout_log_probs: sampler.map(|sampler| sampler.rollout_log_probs),
        weights: weights.as_deref(),
        advantages: column(Column::Advantages),
        entropies: column(Column::Entropies),
        loss: policy(inputs, &batch, profile, options, weights.as_deref())?.map(TrlLoss::Clipped),
        rewards,
        completion_lengths: inputs.chosen.as_deref(),
        truncated: inputs.truncated.as_deref(),
        prompt_lengths: inputs.prompts.as_deref(),
    };
    let sequence = profile.rollout().level == RolloutLevel::Sequence;
    let config = TrlConfig {
        clip_low: options.clip_low,
        clip_high: options.clip_high,
        dual_clip: profile.ppo().dual_clip,
        weight_level: if sequence { TrlLevel::Sequence } else { TrlLevel::Token },
        entropy_coefficient: options.entropy_coefficient,
        ..Default::default()
    };
    let mut sources = vec![RewardSource::default(); usize::from(rewards.is_some())];
    let mut scratch = vec![Moments::default(); if rewards.is_some() { groups.count() } else { 0 }];
    let output = TrlOutput { per_source: &mut sources, scratch: &mut scratch };
    // with a single reward function its output is the reward
    Ok(trl_metrics(&batch, input, &config, output)?.without_sources())
}

pub(super) fn openrlhf(inputs: &Inputs<'_>, profile: Profile, options: &Metrics) -> Result<OpenRlhfMetrics> {
    let batch = inputs.batch()?;
    let column = |column| inputs.column(column);
    let mut weights = Vec::new();
    let gate = match sampler(inputs, &batch).filter(|_| options.correct) {
        Some(sampler) => {
            weights.resize(batch.tokens(), 0.0);
            let config = GateConfig { level: GateLevel::Token, ..Default::default() };
            Some(rollout_gate(&batch, sampler, &config, &mut weights)?)
        }
        None => None,
    };
    let groups = inputs.groups.as_ref().map(|ids| Groups::from_ids(ids)).transpose()?;
    let groups = groups.filter(|groups| groups.count() < batch.sequences());
    let total: Option<Vec<u32>> = match (&inputs.lengths, &inputs.prompts) {
        (Some(responses), Some(prompts)) => {
            Some(responses.iter().zip(prompts).map(|(response, prompt)| response.saturating_add(*prompt)).collect())
        }
        _ => None,
    };
    let limit = options.max_response.zip(options.max_prompt).map(|(response, prompt)| response.saturating_add(prompt));
    let input = OpenRlhfInput {
        // the KL goes into the reward, before the update
        log_probs: column(Column::OldLogProbs).or(column(Column::LogProbs)),
        ref_log_probs: column(Column::RefLogProbs),
        entropies: column(Column::Entropies),
        rewards: column(Column::Rewards),
        predictions: column(Column::Predictions),
        scores: inputs.scores.as_deref(),
        groups,
        total_lengths: total.as_ref().map(|tokens| Lengths { tokens, limit: limit.unwrap_or(u32::MAX) }),
        truncated: inputs.truncated.as_deref(),
        policy_loss: policy(inputs, &batch, profile, options, gate.map(|_| &weights[..]))?,
        gate,
        value_loss: value(inputs, &batch, profile)?,
    };
    let mut scratch = vec![Moments::default(); groups.map_or(0, |groups| groups.count())];
    let mut found = openrlhf_metrics(&batch, input, &OpenRlhfConfig::default(), &mut scratch)?;
    found.response_clip_ratio = found.response_clip_ratio.filter(|_| limit.is_some());
    Ok(found)
}

/// The sampler's log-probabilities, unless there is no token to compare.
fn sampler<'a>(inputs: &Inputs<'a>, batch: &Batch<'_>) -> Option<RolloutInput<'a, f64>> {
    let both = inputs.column(Column::OldLogProbs).zip(inputs.column(Column::RolloutLogProbs));
    let both = both.filter(|_| batch.kept() > 0);
    both.map(|(old_log_probs, rollout_log_probs)| RolloutInput { old_log_probs, rollout_log_probs })
}

fn weights(batch: &Batch<'_>, sampler: RolloutInput<'_, f64>, profile: Profile) -> Result<Vec<f64>> {
    let mut weights = vec![0.0; batch.tokens()];
    rollout_weights(batch, sampler, &profile.rollout(), &mut weights)?;
    Ok(weights)
}

fn policy(
    inputs: &Inputs<'_>,
    batch: &Batch<'_>,
    profile: Profile,
    options: &Metrics,
    weights: Option<&[f64]>,
) -> Result<Option<PolicyLoss>> {
    let column = |column| inputs.column(column);
    let (Some(log_probs), Some(old_log_probs), Some(advantages)) =
        (column(Column::LogProbs), column(Column::OldLogProbs), column(Column::Advantages))
    else {
        return Ok(None);
    };
    let config = PpoConfig { clip_low: options.clip_low, clip_high: options.clip_high, ..profile.ppo() };
    let mut columns = vec![("log_probs", log_probs), ("old_log_probs", old_log_probs), ("advantages", advantages)];
    columns.extend(weights.map(|weights| ("weights", weights)));
    if let Some([loss, clip_fraction, clip_fraction_lower, kl]) = inputs.compute.loss(
        "ppo_clip",
        batch,
        &columns,
        &config,
        ["loss", "clip_fraction", "clip_fraction_lower", "kl"],
    ) {
        let mut found = PolicyLoss::default();
        (found.loss, found.kl) = (loss, kl);
        (found.clip_fraction, found.clip_fraction_lower) = (clip_fraction, clip_fraction_lower);
        return Ok(Some(found));
    }
    let input = PolicyLossInput { log_probs, old_log_probs, advantages, weights };
    let loss = ppo_clip(batch, input, &config, &mut vec![0.0; batch.tokens()]);
    instead(loss, profile, |loss| {
        let mut undefined = PolicyLoss::default();
        undefined.loss = loss;
        undefined
    })
}

fn value(inputs: &Inputs<'_>, batch: &Batch<'_>, profile: Profile) -> Result<Option<ValueLoss>> {
    let column = |column| inputs.column(column);
    let (Some(predictions), Some(values), Some(returns)) =
        (column(Column::Predictions), column(Column::Values), column(Column::Returns))
    else {
        return Ok(None);
    };
    let config: ValueConfig<'_> = profile.value();
    let columns = [("predictions", predictions), ("values", values), ("returns", returns)];
    let names = ["loss", "clip_fraction"];
    if let Some([loss, clip_fraction]) = inputs.compute.loss("value_loss", batch, &columns, &config, names) {
        let mut found = ValueLoss::default();
        (found.loss, found.clip_fraction) = (loss, clip_fraction);
        return Ok(Some(found));
    }
    let loss =
        value_loss(batch, ValueLossInput { predictions, values, returns }, &config, &mut vec![0.0; batch.tokens()]);
    instead(loss, profile, |loss| {
        let mut undefined = ValueLoss::default();
        undefined.loss = loss;
        undefined
    })
}

/// The loss, or what the framework reports if no token is kept.
fn instead<T>(loss: Result<T>, profile: Profile, of: fn(f64) -> T) -> Result<Option<T>> {
    match loss {
        Err(Error::EmptyMask) => Ok(profile.conventions().empty_loss.value().map(of)),
        loss => loss.map(Some),
    }
}
