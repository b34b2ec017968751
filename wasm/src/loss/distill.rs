//! Losses that draw a student to a teacher, the KL loss, and the loss that corrects for the sampler itself.

use alloc::vec::Vec;

use tokenwise::{
    loss as core,
    rollout::{CriterionMetrics, RejectionConfig, RejectionTotals},
    Either,
};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    config,
    divergence::kl_input,
    error::Result,
    export::export,
    js,
    put::{entries, numbers},
    read::{present, read, size, ReadLoss as _},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("distill.ts");

declare!("choice BypassForm |ppo-clip|reinforce");

export! {
    #[cfg(feature = "full")]
    REST = 15;
    kl_loss(batch:batch, input{log_probs, ref_log_probs}, config:KlLossConfig) -> (loss, aggregated, mean, grad:T)
        => klLoss, klLossF64;
    opd_loss(batch:batch, input{log_probs, old_log_probs, teacher_log_probs, weights?}, config:OpdLossConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, abs_loss, loss_min, loss_max, grad:T) => opdLoss, opdLossF64;
    ref_kl(batch:batch, input{log_probs, old_log_probs, ref_log_probs, weights?}, config:RefKlConfig)
        -> (loss, ref_kl, fallen, mismatch_fallen, mismatch_kept, grad:T) => refKl, refKlF64;
    iw_opd(batch:batch, input{log_probs, old_log_probs, teacher_log_probs}, config:IwOpdConfig)
        -> (loss, mean_advantage, mean_abs_advantage, mean_weight, min_weight, max_weight, grad:T) => iwOpd, iwOpdF64;
    forward_kl_topk(
        batch:batch, input{log_probs, teacher_log_probs, k:size, teacher_ids?:words, student_ids?:words},
        config:ForwardKlTopKConfig) -> (
            loss, loss_min, loss_max, student_mass{mean, min, max}, teacher_mass{mean, min, max},
            overlap??{ratio, token_advantage}, losses:T, grad:F
        ) => forwardKlTopk, forwardKlTopkF64;
    topk_jsd(batch:batch, input{log_probs, teacher_log_probs, k:size, weights?}, config:TopKJsdConfig)
        -> (loss, grad:F) => topkJsd, topkJsdF64;
    mixed_kl_topk(batch:batch, input{log_probs, teacher_log_probs, k:size, entropies?}, config:MixedKlConfig)
        -> (loss, grad:F, grad_entropies:T) => mixedKlTopk, mixedKlTopkF64;
    generalized_jsd(batch:batch, input{logits, teacher_logits, vocab:size, weights?}, config:JsdConfig)
        -> (loss, grad_logits:F) => generalizedJsd, generalizedJsdF64;
    bypass_loss(batch:batch, input{log_probs, old_log_probs, advantages}, config:bypass)
        -> (loss, clip_fraction, clip_fraction_lower, kl, metrics*, weights:T, keep:M, grad:T)
        => bypassLoss, bypassLossF64;
}

fn kl_loss(call: &mut Call<'_>) -> Result {
    let (config, input) = (core::KlLossConfig::read(call), kl_input(call));
    let result = core::kl_loss(call.batch, input, &config, call.real())?;
    numbers(&[result.loss, result.aggregated, result.mean]);
    Ok(())
}

fn opd_loss(call: &mut Call<'_>) -> Result {
    let config = core::OpdLossConfig::read(call);
    let input = core::OpdLossInput {
        log_probs: call.real(),
        old_log_probs: call.real(),
        teacher_log_probs: call.real(),
        weights: call.optional_real(),
    };
    let result = core::opd_loss(call.batch, input, &config, call.real())?;
    numbers(&[
        result.loss,
        result.clip_fraction,
        result.clip_fraction_lower,
        result.kl,
        result.abs_loss,
        result.loss_min,
        result.loss_max,
    ]);
    Ok(())
}

fn ref_kl(call: &mut Call<'_>) -> Result {
    let config = core::RefKlConfig::read(call);
    let input = core::RefKlInput {
        log_probs: call.real(),
        old_log_probs: call.real(),
        ref_log_probs: call.real(),
        weights: call.optional_real(),
    };
    let result = core::ref_kl(call.batch, input, &config, call.real())?;
    numbers(&[result.loss, result.ref_kl, result.fallen, result.mismatch_fallen, result.mismatch_kept]);
    Ok(())
}

fn iw_opd(call: &mut Call<'_>) -> Result {
    let config = core::IwOpdConfig::read(call);
    let input = core::IwOpdInput { log_probs: call.real(), old_log_probs: call.real(), teacher_log_probs: call.real() };
    let result = core::iw_opd(call.batch, input, &config, call.real())?;
    numbers(&[
        result.loss,
        result.mean_advantage,
        result.mean_abs_advantage,
        result.mean_weight,
        result.min_weight,
        result.max_weight,
    ]);
    Ok(())
}

fn forward_kl_topk(call: &mut Call<'_>) -> Result {
    let config = core::ForwardKlTopKConfig::read(call);
    let (log_probs, teacher_log_probs, k) = (call.real(), call.real(), size());
    // one without the other is empty, which the core refuses by its length
    let ids = match (call.optional_words(), call.optional_words()) {
        (None, None) => None,
        (teacher, student) => {
            Some(core::TopKIds { teacher: teacher.unwrap_or_default(), student: student.unwrap_or_default() })
        }
    };
    let output = core::ForwardKlTopKOutput { losses: call.real(), grad: call.real() };
    let input = core::ForwardKlTopKInput { log_probs, teacher_log_probs, k, ids };
    let result = core::forward_kl_topk(call.batch, input, &config, output)?;
    numbers(&[result.loss, result.loss_min, result.loss_max]);
    numbers(&result.student_mass);
    numbers(&result.teacher_mass);
    match result.overlap {
        Some(overlap) => numbers(&[1.0, overlap.ratio, overlap.token_advantage]),
        None => js::put(0.0),
    }
    Ok(())
}

fn topk_jsd(call: &mut Call<'_>) -> Result {
    let config = core::TopKJsdConfig::read(call);
    let input = core::TopKInput {
        log_probs: call.real(),
        teacher_log_probs: call.real(),
        k: size(),
        weights: call.optional_real(),
    };
    js::put(core::topk_jsd(call.batch, input, &config, call.real())?);
    Ok(())
}

fn mixed_kl_topk(call: &mut Call<'_>) -> Result {
    let config = core::MixedKlConfig::read(call);
    let (log_probs, teacher_log_probs, k, entropies) = (call.real(), call.real(), size(), call.optional_real());
    let (grad, grad_entropies) = (call.real(), call.real());
    let none: Vec<Either> = match entropies {
        // not read where the student's entries are scaled
        None if config.outside == core::OutsideTopK::Renormalize => zeros(grad_entropies.len()),
        _ => Vec::new(),
    };
    let input = core::MixedKlInput { log_probs, teacher_log_probs, k, entropies: entropies.unwrap_or(none.as_slice()) };
    js::put(core::mixed_kl_topk(call.batch, input, &config, core::MixedKlOutput { grad, grad_entropies })?);
    Ok(())
}

fn generalized_jsd(call: &mut Call<'_>) -> Result {
    let config = core::JsdConfig::read(call);
    let input = core::JsdInput {
        logits: call.real(),
        teacher_logits: call.real(),
        vocab: size(),
        weights: call.optional_real(),
    };
    js::put(core::generalized_jsd(call.batch, input, &config, call.real())?);
    Ok(())
}

fn bypass_loss(call: &mut Call<'_>) -> Result {
    let rollout = present().then(read);
    let (criteria, divisor) = (config::criteria(), read());
    let form = match js::index(0) {
        1 => core::BypassForm::Reinforce(core::ReinforceConfig::read(call)),
        _ => core::BypassForm::PpoClip(core::PpoConfig::read(call)),
    };
    let rejection = RejectionConfig { criteria: &criteria, divisor };
    let config = core::BypassConfig { weights: rollout, rejection, form, divisor: read() };
    let input = core::PolicyLossInput {
        log_probs: call.real(),
        old_log_probs: call.real(),
        advantages: call.real(),
        weights: None,
    };
    let mut per_criterion: Vec<CriterionMetrics> = zeros(criteria.len());
    let output = core::BypassOutput {
        weights: call.real(),
        keep: call.flags(),
        per_criterion: &mut per_criterion,
        grad: call.real(),
    };
    let result = core::bypass_loss(call.batch, input, &config, output)?;
    let policy = result.policy;
    numbers(&[policy.loss, policy.clip_fraction, policy.clip_fraction_lower, policy.kl]);
    entries(result.mismatch.entries().into_iter());
    if let Some(weights) = result.weights {
        entries(weights.entries());
    }
    entries(per_criterion.iter().flat_map(CriterionMetrics::entries));
    entries(result.rejection.iter().flat_map(RejectionTotals::entries));
    Ok(())
}
