//! All that a framework logs for a batch, as one object by its keys.

use alloc::{string::String, vec::Vec};

use tokenwise::{
    loss::{PolicyLoss, ValueLoss, VespoLoss},
    metric as core,
    rollout::{CriterionMetrics, GateReport, RejectionConfig},
    Mask, Moments,
};
use wasm_bindgen::{prelude::wasm_bindgen, JsCast, JsValue};

use crate::{
    array::{flags, read, zeros, Real},
    batch::{Owned, OwnedGroups},
    config,
    error::{wrong_type, Result},
    export::export,
    js,
    object::{numbers, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("sets.ts");

export! {
    #[cfg(feature = "full")]
    REST = 20;
    verl_metrics(batch, input, config) => verlMetrics, verlMetricsF64;
    trl_metrics(batch, input, config) => trlMetrics, trlMetricsF64;
    openrlhf_metrics(batch, input, config) => openrlhfMetrics, openrlhfMetricsF64;
    reduce_metric(key, values, global_counts) => reduceMetric;
}

/// The fields of an input, of which any may be missing; others are refused, for a slip would leave out keys without a word.
fn fields<'a>(input: &'a JsValue, tokens: &[&str], others: &[&str]) -> Result<Fields<'a>> {
    Fields::config("input", input, &[tokens, others].concat())
}

/// The token slices of an input, in the order of their names.
#[inline(never)]
fn slices<R: Real, const N: usize>(fields: &Fields<'_>, keys: [&str; N]) -> Result<[Option<Vec<R>>; N]> {
    let mut slices = [const { None }; N];
    for (slice, key) in slices.iter_mut().zip(keys) {
        *slice = fields.optional_array(key)?;
    }
    Ok(slices)
}

/// A field that is an object, if it is there.
fn nested<T>(fields: &Fields<'_>, key: &str, read: impl FnOnce(&Fields<'_>) -> Result<T>) -> Result<Option<T>> {
    let value = fields.get(key)?;
    if value.is_undefined() {
        return Ok(None);
    }
    read(&Fields::input(key, &value)?).map(Some)
}

fn lengths(fields: &Fields<'_>, key: &str) -> Result<Option<(Vec<u32>, u32)>> {
    nested(fields, key, |found| Ok((found.array("tokens")?, found.size("limit")? as u32)))
}

fn view(lengths: &Option<(Vec<u32>, u32)>) -> Option<core::Lengths<'_>> {
    lengths.as_ref().map(|(tokens, limit)| core::Lengths { tokens, limit: *limit })
}

fn optional_flags(fields: &Fields<'_>, key: &'static str) -> Result<Option<Vec<bool>>> {
    let value = fields.get(key)?;
    if value.is_undefined() {
        return Ok(None);
    }
    flags(key, &value).map(Some)
}

fn optional_number(fields: &Fields<'_>, key: &str) -> Result<Option<f64>> {
    if fields.get(key)?.is_undefined() {
        return Ok(None);
    }
    fields.number(key).map(Some)
}

fn policy(found: &Fields<'_>) -> Result<PolicyLoss> {
    Ok(PolicyLoss {
        loss: found.number("loss")?,
        clip_fraction: found.number("clipFraction")?,
        clip_fraction_lower: found.number("clipFractionLower")?,
        kl: found.number("kl")?,
    })
}

fn value(found: &Fields<'_>) -> Result<ValueLoss> {
    Ok(ValueLoss { loss: found.number("loss")?, clip_fraction: found.number("clipFraction")? })
}

fn verl_metrics<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let tokens = [
        "scores",
        "rewards",
        "advantages",
        "returns",
        "values",
        "predictions",
        "logProbs",
        "refLogProbs",
        "oldLogProbs",
        "rolloutLogProbs",
        "oldEntropies",
        "entropies",
        "sumPiSquared",
        "weights",
    ];
    let others = [
        "responseLengths",
        "promptLengths",
        "gradientNorm",
        "policyLoss",
        "valueLoss",
        "rewardKl",
        "maskBeforeRejection",
    ];
    let batch = Owned::read(batch)?;
    let fields = fields(input, &tokens, &others)?;
    let slices = slices::<R, 14>(&fields, tokens)?;
    let [scores, rewards, advantages, returns, values, predictions, log_probs, ref_log_probs, old_log_probs, rollout_log_probs, old_entropies, entropies, sum_pi_squared, weights] =
        slices.each_ref().map(|slice| slice.as_deref());
    let (responses, prompts) = (lengths(&fields, "responseLengths")?, lengths(&fields, "promptLengths")?);
    let mask = optional_flags(&fields, "maskBeforeRejection")?;
    let input = core::VerlInput {
        scores,
        rewards,
        advantages,
        returns,
        values,
        predictions,
        response_lengths: view(&responses),
        prompt_lengths: view(&prompts),
        log_probs,
        ref_log_probs,
        old_log_probs,
        rollout_log_probs,
        old_entropies,
        entropies,
        sum_pi_squared,
        weights,
        gradient_norm: optional_number(&fields, "gradientNorm")?,
        policy_loss: nested(&fields, "policyLoss", policy)?,
        value_loss: nested(&fields, "valueLoss", value)?,
        reward_kl: nested(&fields, "rewardKl", |found| {
            Ok(core::RewardKl { kl: found.number("kl")?, coefficient: found.number("coefficient")? })
        })?,
        mask_before_rejection: mask.as_deref().map(Mask::new),
    };
    let owned = config::nested_aggregate(config, config::TOKEN_MEAN)?;
    let keys = ["aggregate", "divisor", "kl", "klCoefficient", "entropyCoefficient", "rolloutWeights", "rejection"];
    let fields = Fields::config("config", config, &keys)?;
    let default = core::VerlConfig::default();
    let (weights, rejection) = (fields.get("rolloutWeights")?, fields.get("rejection")?);
    let rejection = (!rejection.is_undefined()).then(|| config::rejection(&rejection)).transpose()?;
    let config = core::VerlConfig {
        aggregate: if fields.get("aggregate")?.is_undefined() { default.aggregate } else { owned.view()? },
        divisor: fields.choice_or("divisor", default.divisor)?,
        kl: fields.kl_or("kl", default.kl)?,
        kl_coefficient: fields.number_or("klCoefficient", default.kl_coefficient)?,
        entropy_coefficient: fields.number_or("entropyCoefficient", default.entropy_coefficient)?,
        rollout_weights: (!weights.is_undefined()).then(|| config::rollout(&weights)).transpose()?,
        rejection: rejection.as_ref().map(|(criteria, divisor)| RejectionConfig { criteria, divisor: *divisor }),
    };
    let mut criteria: Vec<CriterionMetrics> = zeros(config.rejection.map_or(0, |rejection| rejection.criteria.len()))?;
    let entries = core::verl_metrics(&batch.view()?, input, &config, &mut criteria)?.entries();
    numbers(entries)
}

fn loss(found: &Fields<'_>) -> Result<core::TrlLoss> {
    let kinds = ["clipped", "cispo", "sapo", "vespo"];
    Ok(match found.chosen("kind", &kinds)? {
        None => return Err(wrong_type("kind", &kinds.join(" | "), &JsValue::UNDEFINED)),
        Some(0) => core::TrlLoss::Clipped(policy(found)?),
        Some(1) => core::TrlLoss::Cispo(policy(found)?),
        Some(2) => core::TrlLoss::Sapo(policy(found)?),
        Some(_) => core::TrlLoss::Vespo(VespoLoss { loss: found.number("loss")?, phi_mean: found.number("phiMean")? }),
    })
}

/// The scores of each reward function, the weight of each, and how it is called.
struct Scores<R> {
    groups: OwnedGroups,
    sources: Vec<R>,
    weights: Vec<f64>,
    names: Vec<String>,
}

fn scores<R: Real>(found: &Fields<'_>) -> Result<Scores<R>> {
    let names = found.get("names")?;
    let array = names.dyn_ref::<js::Array>().ok_or_else(|| wrong_type("names", "an array", &names))?;
    let text = |name: JsValue| name.as_string().ok_or_else(|| wrong_type("names", "an array of strings", &name));
    let weights: Vec<f64> = found.array("sourceWeights")?;
    let names = (0..array.len()).map(|index| text(array.at(index))).collect::<Result<Vec<String>>>()?;
    if names.len() != weights.len() {
        return Err(tokenwise::Error::Length { what: "names", expected: weights.len(), got: names.len() }.into());
    }
    let groups = OwnedGroups::read("groups", &found.get("groups")?)?;
    Ok(Scores { groups, sources: found.array("sources")?, weights, names })
}

fn trl_metrics<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let tokens = ["logProbs", "oldLogProbs", "refLogProbs", "rolloutLogProbs", "weights", "advantages", "entropies"];
    let others = ["loss", "rewards", "completionLengths", "truncated", "promptLengths"];
    let batch = Owned::read(batch)?;
    let fields = fields(input, &tokens, &others)?;
    let slices = slices::<R, 7>(&fields, tokens)?;
    let [log_probs, old_log_probs, ref_log_probs, rollout_log_probs, weights, advantages, entropies] =
        slices.each_ref().map(|slice| slice.as_deref());
    let scores = nested(&fields, "rewards", scores::<R>)?;
    let rewards = match &scores {
        None => None,
        Some(found) => Some(core::TrlRewards {
            groups: found.groups.view()?,
            sources: &found.sources,
            source_weights: &found.weights,
        }),
    };
    let truncated = optional_flags(&fields, "truncated")?;
    let (completions, prompts) = (fields.optional_array("completionLengths")?, fields.optional_array("promptLengths")?);
    let input = core::TrlInput {
        log_probs,
        old_log_probs,
        ref_log_probs,
        rollout_log_probs,
        weights,
        advantages,
        entropies,
        loss: nested(&fields, "loss", loss)?,
        rewards,
        completion_lengths: completions.as_deref(),
        truncated: truncated.as_deref(),
        prompt_lengths: prompts.as_deref(),
    };
    let config = config::trl(config)?;
    let mut per_source: Vec<core::RewardSource> = zeros(rewards.map_or(0, |found| found.source_weights.len()))?;
    let mut scratch: Vec<Moments> = zeros(rewards.map_or(0, |found| found.groups.count()))?;
    let output = core::TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
    let found = core::trl_metrics(&batch.view()?, input, &config, output)?;
    let object = numbers(found.entries())?;
    for (source, name) in found.sources.iter().zip(scores.iter().flat_map(|scores| &scores.names)) {
        js::set(&object, &["rewards/", name, "/mean"].concat(), &source.mean.into())?;
        js::set(&object, &["rewards/", name, "/std"].concat(), &source.std.into())?;
    }
    Ok(object)
}

fn openrlhf_metrics<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let tokens = ["logProbs", "refLogProbs", "entropies", "rewards", "predictions", "scores"];
    let others = ["groups", "totalLengths", "truncated", "policyLoss", "gate", "valueLoss"];
    let batch = Owned::read(batch)?;
    let fields = fields(input, &tokens, &others)?;
    let slices = slices::<R, 6>(&fields, tokens)?;
    let [log_probs, ref_log_probs, entropies, rewards, predictions, scores] =
        slices.each_ref().map(|slice| slice.as_deref());
    let groups = fields.get("groups")?;
    let groups = (!groups.is_undefined()).then(|| OwnedGroups::read("groups", &groups)).transpose()?;
    let groups = groups.as_ref().map(OwnedGroups::view).transpose()?;
    let (total, truncated) = (lengths(&fields, "totalLengths")?, optional_flags(&fields, "truncated")?);
    let input = core::OpenRlhfInput {
        log_probs,
        ref_log_probs,
        entropies,
        rewards,
        predictions,
        scores,
        groups,
        total_lengths: view(&total),
        truncated: truncated.as_deref(),
        policy_loss: nested(&fields, "policyLoss", policy)?,
        gate: nested(&fields, "gate", |found| {
            Ok(GateReport { filtered: found.number("filtered")?, kl: found.number("kl")? })
        })?,
        value_loss: nested(&fields, "valueLoss", value)?,
    };
    let owned = config::nested_aggregate(config, config::TOKEN_MEAN)?;
    let fields = Fields::config("config", config, &["aggregate", "kl", "klUse"])?;
    let default = core::OpenRlhfConfig::default();
    let config = core::OpenRlhfConfig {
        aggregate: if fields.get("aggregate")?.is_undefined() { default.aggregate } else { owned.view()? },
        kl: fields.kl_or("kl", default.kl)?,
        kl_use: fields.choice_or("klUse", default.kl_use)?,
    };
    let mut scratch: Vec<Moments> = zeros(groups.map_or(0, |groups| groups.count()))?;
    numbers(core::openrlhf_metrics(&batch.view()?, input, &config, &mut scratch)?.entries())
}

fn reduce_metric(key: &JsValue, values: &JsValue, global_counts: &JsValue) -> Result<JsValue> {
    let key = key.as_string().ok_or_else(|| wrong_type("key", "a string", key))?;
    let global = match global_counts.as_bool() {
        Some(global) => global,
        None if global_counts.is_undefined() => false,
        None => return Err(wrong_type("globalCounts", "a boolean", global_counts)),
    };
    Ok(core::Reduction::of_key(&key, global).of(&read::<f64>("values", values)?)?.into())
}
