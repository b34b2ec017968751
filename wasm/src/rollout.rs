//! **Before stage 5 — rollout.**

use alloc::{string::String, vec::Vec};

use tokenwise::{
    rollout::{self as core, RolloutInput},
    Batch,
};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{flag_array, read, zeros, Element, Real},
    batch::{OwnedGroups, RawLayout},
    call::{array, arrays, call, call_mask, measure, Size},
    config,
    error::{wrong_type, Result},
    export::export,
    js,
    object::{count, number, numbers, object, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("rollout.ts");

export! {
    #[cfg(feature = "full")]
    REST = 11;
    rollout_weights(batch, input, config) => rolloutWeights, rolloutWeightsF64;
    rollout_weight_metrics(batch, input, config) => rolloutWeightMetrics, rolloutWeightMetricsF64;
    rollout_mismatch(batch, input, config) => rolloutMismatch, rolloutMismatchF64;
    probability_difference(batch, input) => probabilityDifference, probabilityDifferenceF64;
    rollout_rejection(batch, input, config) => rolloutRejection, rolloutRejectionF64;
    rollout_rejection_metrics(batch, input, config) => rolloutRejectionMetrics, rolloutRejectionMetricsF64;
    rollout_gate(batch, input, config) => rolloutGate, rolloutGateF64;
    kl_mask(batch, input, tau) => klMask, klMaskF64;
    sequence_veto(batch, input, config) => sequenceVeto, sequenceVetoF64;
    m2po_mask(batch, input, tau) => m2poMask, m2poMaskF64;
    off_policy_sequence_mask(batch, input, config) => offPolicySequenceMask, offPolicySequenceMaskF64;
    high_entropy_mask(batch, entropies, share) => highEntropyMask, highEntropyMaskF64;
    dynamic_sampling_filter(groups, scores, rule) => dynamicSamplingFilter, dynamicSamplingFilterF64;
    pf_ppo_weights(scores, rule) => pfPpoWeights, pfPpoWeightsF64;
    pf_ppo_indices(weights, seed, draws) => pfPpoIndices;
    response_mask_from_eos(layout, tokens, eos) => responseMaskFromEos;
    parse_rejection(options, thresholds) => parseRejection;
    parse_weight_bound(threshold) => parseWeightBound;
}

const KEYS: [&str; 2] = ["oldLogProbs", "rolloutLogProbs"];

fn rollout_weights<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, mut factor) = (config::rollout(config)?, 1.0);
    let inputs = arrays::<R, 2>(input, KEYS)?;
    let [weights] = call(batch, inputs, Size::Tokens, &mut |batch, [old_log_probs, rollout_log_probs], [weights]| {
        let input = RolloutInput { old_log_probs, rollout_log_probs };
        factor = core::rollout_weights(batch, input, &config, weights)?;
        Ok(())
    })?;
    object([("weights", weights), ("factor", factor.into())])
}

fn rollout_gate<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, mut report) = (config::gate(config)?, core::GateReport::default());
    let inputs = arrays::<R, 2>(input, KEYS)?;
    let [weights] = call(batch, inputs, Size::Tokens, &mut |batch, [old_log_probs, rollout_log_probs], [weights]| {
        let input = RolloutInput { old_log_probs, rollout_log_probs };
        report = core::rollout_gate(batch, input, &config, weights)?;
        Ok(())
    })?;
    object([("weights", weights), ("filtered", report.filtered.into()), ("kl", report.kl.into())])
}

/// Measures trainer against sampler.
#[inline(never)]
fn compare<R: Real>(
    batch: &JsValue,
    input: &JsValue,
    kernel: &mut dyn FnMut(&Batch<'_>, RolloutInput<'_, R>) -> tokenwise::Result<()>,
) -> Result<()> {
    measure(batch, arrays::<R, 2>(input, KEYS)?, &mut |batch, [old_log_probs, rollout_log_probs], []| {
        kernel(batch, RolloutInput { old_log_probs, rollout_log_probs })
    })
}

fn rollout_weight_metrics<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, mut metrics) = (config::rollout(config)?, core::RolloutWeightMetrics::default());
    compare::<R>(batch, input, &mut |batch, input| {
        metrics = core::rollout_weight_metrics(batch, input, &config)?;
        Ok(())
    })?;
    numbers(metrics.entries())
}

fn rollout_mismatch<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (divisor, mut mismatch) = (config::divisor(config)?, core::RolloutMismatch::default());
    compare::<R>(batch, input, &mut |batch, input| {
        mismatch = core::rollout_mismatch(batch, input, divisor)?;
        Ok(())
    })?;
    numbers(mismatch.entries().into_iter())
}

fn probability_difference<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    let mut difference = core::ProbabilityDifference::default();
    compare::<R>(batch, input, &mut |batch, input| {
        difference = core::probability_difference(batch, input)?;
        Ok(())
    })?;
    numbers(difference.entries().into_iter())
}

fn rollout_rejection_metrics<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (criteria, divisor) = config::rejection(config)?;
    let (mut metrics, mut totals) = (zeros(criteria.len())?, core::RejectionTotals::default());
    compare::<R>(batch, input, &mut |batch, input| {
        let config = core::RejectionConfig { criteria: &criteria, divisor };
        totals = core::rollout_rejection_metrics(batch, input, &config, &mut metrics)?;
        Ok(())
    })?;
    numbers(metrics.iter().flat_map(core::CriterionMetrics::entries).chain(totals.entries()))
}

/// A call of the core that drops tokens by trainer against sampler.
type ComparedMask<'k, R> = &'k mut dyn FnMut(&Batch<'_>, RolloutInput<'_, R>, &mut [bool]) -> tokenwise::Result<()>;

/// Masks tokens by trainer against sampler.
#[inline(never)]
fn compared_mask<R: Real>(batch: &JsValue, input: &JsValue, kernel: ComparedMask<'_, R>) -> Result<JsValue> {
    call_mask(batch, arrays::<R, 2>(input, KEYS)?, &mut |batch, [old_log_probs, rollout_log_probs], keep| {
        kernel(batch, RolloutInput { old_log_probs, rollout_log_probs }, keep)
    })
}

fn rollout_rejection<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (criteria, divisor) = config::rejection(config)?;
    compared_mask::<R>(batch, input, &mut |batch, input, keep| {
        core::rollout_rejection(batch, input, &core::RejectionConfig { criteria: &criteria, divisor }, keep)
    })
}

fn kl_mask<R: Real>(batch: &JsValue, input: &JsValue, tau: &JsValue) -> Result<JsValue> {
    let tau = number("tau", tau)?;
    compared_mask::<R>(batch, input, &mut |batch, input, keep| core::kl_mask(batch, input, tau, keep))
}

fn sequence_veto<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::veto(config)?;
    compared_mask::<R>(batch, input, &mut |batch, input, keep| core::sequence_veto(batch, input, &config, keep))
}

fn m2po_mask<R: Real>(batch: &JsValue, input: &JsValue, tau: &JsValue) -> Result<JsValue> {
    let (tau, mut scratch) = (number("tau", tau)?, Vec::new());
    compared_mask::<R>(batch, input, &mut |batch, input, keep| {
        scratch.resize(batch.kept(), 0.0);
        core::m2po_mask(batch, input, tau, &mut scratch, keep)
    })
}

fn off_policy_sequence_mask<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::off_policy(config)?;
    let inputs = arrays::<R, 3>(input, ["logProbs", "oldLogProbs", "advantages"])?;
    call_mask(batch, inputs, &mut |batch, [log_probs, old_log_probs, advantages], keep| {
        let input = core::OffPolicyInput { log_probs, old_log_probs, advantages };
        core::off_policy_sequence_mask(batch, input, &config, keep)
    })
}

fn high_entropy_mask<R: Real>(batch: &JsValue, entropies: &JsValue, share: &JsValue) -> Result<JsValue> {
    let share = number("share", share)?;
    call_mask::<R, 1>(batch, array("entropies", entropies)?, &mut |batch, [entropies], keep| {
        core::high_entropy_mask(batch, entropies, share, keep)
    })
}

fn dynamic_sampling_filter<R: Real>(groups: &JsValue, scores: &JsValue, rule: &JsValue) -> Result<JsValue> {
    let (groups, rule) = (OwnedGroups::read("groups", groups)?, config::group_rule(rule)?);
    let (groups, scores) = (groups.view()?, read::<R>("scores", scores)?);
    let (mut scratch, mut keep) = (zeros(groups.count())?, zeros(groups.count())?);
    core::dynamic_sampling_filter(&groups, &scores, &rule, &mut scratch, &mut keep)?;
    Ok(flag_array(&keep))
}

fn pf_ppo_weights<R: Real>(scores: &JsValue, rule: &JsValue) -> Result<JsValue> {
    let (scores, rule) = (read::<R>("scores", scores)?, config::pf_ppo_rule(rule)?);
    let mut weights = zeros(scores.len())?;
    core::pf_ppo_weights(&scores, &rule, &mut weights)?;
    Ok(f64::array(&weights))
}

fn pf_ppo_indices(weights: &JsValue, seed: &JsValue, draws: &JsValue) -> Result<JsValue> {
    let (weights, seed) = (read::<f64>("weights", weights)?, count("seed", seed)?);
    let (mut scratch, mut indices) = (zeros(weights.len())?, zeros(size("draws", draws)?)?);
    core::pf_ppo_indices(&weights, seed, &mut scratch, &mut indices)?;
    Ok(u32::array(&indices))
}

fn response_mask_from_eos(layout: &JsValue, tokens: &JsValue, eos: &JsValue) -> Result<JsValue> {
    let (layout, tokens) = (RawLayout::read("layout", layout)?, read::<u32>("tokens", tokens)?);
    let (eos, mut keep) = (read::<u32>("eos", eos)?, zeros(tokens.len())?);
    core::response_mask_from_eos(&layout.view()?, &tokens, &eos, &mut keep)?;
    Ok(flag_array(&keep))
}

fn parse_rejection(options: &JsValue, thresholds: &JsValue) -> Result<JsValue> {
    let (options, thresholds) = (text("options", options)?, text("thresholds", thresholds)?);
    let mut criteria = zeros(options.split(',').count())?;
    let count = core::parse_rejection_by(&decimal, &options, &thresholds, &mut criteria)?;
    let array = js::Array::new();
    for criterion in criteria.iter().take(count) {
        array.push(&config::write_criterion(criterion)?);
    }
    Ok(array.into())
}

fn parse_weight_bound(threshold: &JsValue) -> Result<JsValue> {
    config::write_weight_bound(core::parse_weight_bound_by(&decimal, &text("threshold", threshold)?)?)
}

fn text(parameter: &str, value: &JsValue) -> Result<String> {
    value.as_string().ok_or_else(|| wrong_type(parameter, "a string", value))
}

/// A decimal number as Rust reads it. JavaScript rounds it as well, and has the tables for that.
fn decimal(text: &str) -> f64 {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.trim_start_matches('+') {
        "inf" | "infinity" => f64::INFINITY,
        // what JavaScript holds for 0
        "" => f64::NAN,
        _ if digits => js::number(text),
        _ => f64::NAN,
    }
}
