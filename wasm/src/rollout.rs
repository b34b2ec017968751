//! **Before stage 5 — rollout.**

use alloc::{string::String, vec::Vec};

use tokenwise::{
    rollout::{self as core, RolloutInput, WeightBound},
    Either,
};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{bytes, zeros, Call},
    config,
    error::Result,
    export::export,
    js,
    put::{entries, numbers},
    read::{count, number, read, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("rollout.ts");

export! {
    #[cfg(feature = "full")]
    REST = 11;
    rollout_weights(batch:batch, input{old_log_probs, rollout_log_probs}, config:RolloutConfig) -> (weights:T, factor)
        => rolloutWeights, rolloutWeightsF64;
    rollout_weight_metrics(batch:batch, input{old_log_probs, rollout_log_probs}, config:RolloutConfig) -> (*)
        => rolloutWeightMetrics, rolloutWeightMetricsF64;
    rollout_mismatch(batch:batch, input{old_log_probs, rollout_log_probs}, config:DivisorOnly) -> (*)
        => rolloutMismatch, rolloutMismatchF64;
    probability_difference(batch:batch, input{old_log_probs, rollout_log_probs}) -> (*)
        => probabilityDifference, probabilityDifferenceF64;
    rollout_rejection(batch:batch, input{old_log_probs, rollout_log_probs}, config:RejectionConfig) -> (:M)
        => rolloutRejection, rolloutRejectionF64;
    rollout_rejection_metrics(batch:batch, input{old_log_probs, rollout_log_probs}, config:RejectionConfig) -> (*)
        => rolloutRejectionMetrics, rolloutRejectionMetricsF64;
    rollout_gate(batch:batch, input{old_log_probs, rollout_log_probs}, config:GateConfig) -> (weights:T, filtered, kl)
        => rolloutGate, rolloutGateF64;
    kl_mask(batch:batch, input{old_log_probs, rollout_log_probs}, tau:number) -> (:M) => klMask, klMaskF64;
    sequence_veto(batch:batch, input{old_log_probs, rollout_log_probs}, config:VetoConfig) -> (:M)
        => sequenceVeto, sequenceVetoF64;
    m2po_mask(batch:batch, input{old_log_probs, rollout_log_probs}, tau:number) -> (:M) => m2poMask, m2poMaskF64;
    off_policy_sequence_mask(batch:batch, input{log_probs, old_log_probs, advantages}, config:OffPolicyConfig) -> (:M)
        => offPolicySequenceMask, offPolicySequenceMaskF64;
    high_entropy_mask(batch:batch, entropies, share:number) -> (:M) => highEntropyMask, highEntropyMaskF64;
    dynamic_sampling_filter(groups:groups, scores, rule?:GroupRule) -> ()
        => dynamicSamplingFilter, dynamicSamplingFilterF64;
    pf_ppo_weights(scores, rule?:PfPpoRule) -> () => pfPpoWeights, pfPpoWeightsF64;
    pf_ppo_indices(!weights:doubles, seed:count, draws:size) -> () => pfPpoIndices;
    response_mask_from_eos(!layout:layout, tokens:words, eos:words) -> () => responseMaskFromEos;
    parse_rejection(!options:text, thresholds:text) -> (+{option:RejectionOption, lower, upper}) => parseRejection;
    parse_weight_bound(threshold:text) -> (:WeightBound) => parseWeightBound;
}

/// Trainer against sampler.
#[inline(never)]
fn compared<'a>(call: &mut Call<'a>) -> RolloutInput<'a, Either> {
    RolloutInput { old_log_probs: call.real(), rollout_log_probs: call.real() }
}

fn rollout_weights(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = compared(call);
    js::put(core::rollout_weights(call.batch, input, &config, call.real())?);
    Ok(())
}

fn rollout_gate(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = compared(call);
    let report = core::rollout_gate(call.batch, input, &config, call.real())?;
    numbers(&[report.filtered, report.kl]);
    Ok(())
}

fn rollout_weight_metrics(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = compared(call);
    entries(core::rollout_weight_metrics(call.batch, input, &config)?.entries());
    Ok(())
}

fn rollout_mismatch(call: &mut Call<'_>) -> Result {
    let divisor = read();
    let input = compared(call);
    entries(core::rollout_mismatch(call.batch, input, divisor)?.entries().into_iter());
    Ok(())
}

fn probability_difference(call: &mut Call<'_>) -> Result {
    let input = compared(call);
    entries(core::probability_difference(call.batch, input)?.entries().into_iter());
    Ok(())
}

fn rollout_rejection_metrics(call: &mut Call<'_>) -> Result {
    let (criteria, divisor) = (config::criteria(), read());
    let input = compared(call);
    let mut metrics: Vec<core::CriterionMetrics> = zeros(criteria.len());
    let config = core::RejectionConfig { criteria: &criteria, divisor };
    let totals = core::rollout_rejection_metrics(call.batch, input, &config, &mut metrics)?;
    entries(metrics.iter().flat_map(core::CriterionMetrics::entries).chain(totals.entries()));
    Ok(())
}

fn rollout_rejection(call: &mut Call<'_>) -> Result {
    let (criteria, divisor) = (config::criteria(), read());
    let input = compared(call);
    core::rollout_rejection(call.batch, input, &core::RejectionConfig { criteria: &criteria, divisor }, call.flags())
}

fn kl_mask(call: &mut Call<'_>) -> Result {
    let tau = number();
    let input = compared(call);
    core::kl_mask(call.batch, input, tau, call.flags())
}

fn sequence_veto(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = compared(call);
    core::sequence_veto(call.batch, input, &config, call.flags())
}

fn m2po_mask(call: &mut Call<'_>) -> Result {
    let tau = number();
    let input = compared(call);
    core::m2po_mask(call.batch, input, tau, &mut zeros(call.batch.kept()), call.flags())
}

fn off_policy_sequence_mask(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::OffPolicyInput { log_probs: call.real(), old_log_probs: call.real(), advantages: call.real() };
    core::off_policy_sequence_mask(call.batch, input, &config, call.flags())
}

fn high_entropy_mask(call: &mut Call<'_>) -> Result {
    let (share, entropies) = (number(), call.real());
    core::high_entropy_mask(call.batch, entropies, share, call.flags())
}

fn dynamic_sampling_filter(call: &mut Call<'_>) -> Result {
    let (rule, scores, groups) = (read(), call.real(), call.groups()?);
    let mut keep = zeros(groups.count());
    core::dynamic_sampling_filter(&groups, scores, &rule, &mut zeros(groups.count()), &mut keep)?;
    js::flags(&bytes(keep));
    Ok(())
}

fn pf_ppo_weights(call: &mut Call<'_>) -> Result {
    let (rule, scores) = (read(), call.real());
    let mut weights = zeros(scores.len());
    core::pf_ppo_weights(scores, &rule, &mut weights)?;
    js::doubles(&weights);
    Ok(())
}

fn pf_ppo_indices(call: &mut Call<'_>) -> Result {
    let (weights, seed, draws) = (call.double(), count(), size());
    let mut indices = zeros(draws);
    core::pf_ppo_indices(weights, seed, &mut zeros(weights.len()), &mut indices)?;
    js::words(&indices);
    Ok(())
}

fn response_mask_from_eos(call: &mut Call<'_>) -> Result {
    let (layout, tokens, eos) = (call.layout()?, call.words(), call.words());
    let mut keep = zeros(tokens.len());
    core::response_mask_from_eos(&layout, tokens, eos, &mut keep)?;
    js::flags(&bytes(keep));
    Ok(())
}

fn parse_rejection(call: &mut Call<'_>) -> Result {
    let (options, thresholds) = (text(call), text(call));
    let mut criteria = zeros(1 + options.bytes().filter(|&byte| byte == b',').count());
    let count = core::parse_rejection_by(&decimal, &options, &thresholds, &mut criteria)?;
    for criterion in criteria.iter().take(count) {
        numbers(&[1.0, criterion.option as u32 as f64, criterion.lower, criterion.upper]);
    }
    Ok(())
}

fn parse_weight_bound(call: &mut Call<'_>) -> Result {
    match core::parse_weight_bound_by(&decimal, &text(call))? {
        WeightBound::Unbounded => js::put(0.0),
        WeightBound::Truncate { upper } => numbers(&[1.0, upper]),
        WeightBound::Zero { lower, upper } => numbers(&[2.0, lower, upper]),
        WeightBound::Clamp { lower, upper } => numbers(&[3.0, lower, upper]),
    }
    Ok(())
}

/// A text arrives as its characters.
#[inline(never)]
pub(crate) fn text(call: &mut Call<'_>) -> String {
    call.words().iter().filter_map(|&character| char::from_u32(character)).collect()
}

/// A decimal number as Rust reads it. JavaScript rounds it as well, and has the tables for that.
fn decimal(text: &str) -> f64 {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.strip_prefix('+').unwrap_or(text) {
        "inf" | "infinity" => f64::INFINITY,
        // what JavaScript holds for 0
        "" => f64::NAN,
        _ if digits => js::decimal(text),
        _ => f64::NAN,
    }
}
