//! Losses that draw a student to a teacher, the KL loss, and the loss that corrects for the sampler itself.

use alloc::vec::Vec;

use tokenwise::{
    divergence::KlInput,
    loss as core,
    rollout::{CriterionMetrics, RejectionConfig, RejectionTotals},
};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{flag_array, zeros, Real},
    batch::Owned,
    call::{arrays, call, Size},
    config::{self, nested_aggregate, TOKEN_MEAN},
    error::Result,
    export::export,
    object::{numbers, object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("distill.ts");

export! {
    #[cfg(feature = "full")]
    REST = 15;
    kl_loss(batch, input, config) => klLoss, klLossF64;
    opd_loss(batch, input, config) => opdLoss, opdLossF64;
    ref_kl(batch, input, config) => refKl, refKlF64;
    iw_opd(batch, input, config) => iwOpd, iwOpdF64;
    forward_kl_topk(batch, input, config) => forwardKlTopk, forwardKlTopkF64;
    topk_jsd(batch, input, config) => topkJsd, topkJsdF64;
    mixed_kl_topk(batch, input, config) => mixedKlTopk, mixedKlTopkF64;
    generalized_jsd(batch, input, config) => generalizedJsd, generalizedJsdF64;
    bypass_loss(batch, input, config) => bypassLoss, bypassLossF64;
}

fn weights<R: Real>(input: &JsValue) -> Result<Option<Vec<R>>> {
    Fields::input("input", input)?.optional_array("weights")
}

fn k(input: &JsValue) -> Result<usize> {
    Fields::input("input", input)?.size("k")
}

fn slots(batch: &JsValue) -> Result<usize> {
    Ok(Owned::read(batch)?.view()?.tokens())
}

fn kl_loss<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = nested_aggregate(config, TOKEN_MEAN)?;
    let (config, mut result) = (config::kl_loss(config, aggregate.view()?)?, core::KlLoss::default());
    let inputs = arrays::<R, 2>(input, ["logProbs", "refLogProbs"])?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [log_probs, ref_log_probs], [grad]| {
        result = core::kl_loss(batch, KlInput { log_probs, ref_log_probs }, &config, grad)?;
        Ok(())
    })?;
    object([
        ("loss", result.loss.into()),
        ("aggregated", result.aggregated.into()),
        ("mean", result.mean.into()),
        ("grad", grad),
    ])
}

fn opd_loss<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, weights) = (nested_aggregate(config, TOKEN_MEAN)?, weights::<R>(input)?);
    let (config, mut result) = (config::opd_loss(config, aggregate.view()?)?, core::OpdLoss::default());
    let inputs = arrays::<R, 3>(input, ["logProbs", "oldLogProbs", "teacherLogProbs"])?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [new, old, teacher], [grad]| {
        let weights = weights.as_deref();
        let input = core::OpdLossInput { log_probs: new, old_log_probs: old, teacher_log_probs: teacher, weights };
        result = core::opd_loss(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([
        ("loss", result.loss.into()),
        ("clipFraction", result.clip_fraction.into()),
        ("clipFractionLower", result.clip_fraction_lower.into()),
        ("kl", result.kl.into()),
        ("absLoss", result.abs_loss.into()),
        ("lossMin", result.loss_min.into()),
        ("lossMax", result.loss_max.into()),
        ("grad", grad),
    ])
}

fn ref_kl<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, weights) = (nested_aggregate(config, TOKEN_MEAN)?, weights::<R>(input)?);
    let (config, mut result) = (config::ref_kl(config, aggregate.view()?)?, core::RefKlLoss::default());
    let inputs = arrays::<R, 3>(input, ["logProbs", "oldLogProbs", "refLogProbs"])?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [new, old, reference], [grad]| {
        let weights = weights.as_deref();
        let input = core::RefKlInput { log_probs: new, old_log_probs: old, ref_log_probs: reference, weights };
        result = core::ref_kl(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([
        ("loss", result.loss.into()),
        ("refKl", result.ref_kl.into()),
        ("fallen", result.fallen.into()),
        ("mismatchFallen", result.mismatch_fallen.into()),
        ("mismatchKept", result.mismatch_kept.into()),
        ("grad", grad),
    ])
}

fn iw_opd<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = nested_aggregate(config, TOKEN_MEAN)?;
    let (config, mut result) = (config::iw_opd(config, aggregate.view()?)?, core::IwOpdLoss::default());
    let inputs = arrays::<R, 3>(input, ["logProbs", "oldLogProbs", "teacherLogProbs"])?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [new, old, teacher], [grad]| {
        let input = core::IwOpdInput { log_probs: new, old_log_probs: old, teacher_log_probs: teacher };
        result = core::iw_opd(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([
        ("loss", result.loss.into()),
        ("meanAdvantage", result.mean_advantage.into()),
        ("meanAbsAdvantage", result.mean_abs_advantage.into()),
        ("meanWeight", result.mean_weight.into()),
        ("minWeight", result.min_weight.into()),
        ("maxWeight", result.max_weight.into()),
        ("grad", grad),
    ])
}

fn spread([mean, min, max]: [f64; 3]) -> Result<JsValue> {
    object([("mean", mean.into()), ("min", min.into()), ("max", max.into())])
}

fn forward_kl_topk<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, k) = (nested_aggregate(config, TOKEN_MEAN)?, k(input)?);
    let (config, mut result) = (config::forward_kl_topk(config, aggregate.view()?)?, core::ForwardKlTopK::default());
    let fields = Fields::input("input", input)?;
    let (teacher, student) = (fields.optional_array::<u32>("teacherIds")?, fields.optional_array::<u32>("studentIds")?);
    // one without the other is empty, which the core refuses by its length
    let (teacher, student, ids) = match (teacher, student) {
        (None, None) => (Vec::new(), Vec::new(), false),
        (teacher, student) => (teacher.unwrap_or_default(), student.unwrap_or_default(), true),
    };
    let mut losses: Vec<R> = zeros(slots(batch)?)?;
    let inputs = arrays::<R, 2>(input, ["logProbs", "teacherLogProbs"])?;
    let [grad] = call(batch, inputs, Size::First, &mut |batch, [log_probs, teacher_log_probs], [grad]| {
        let ids = ids.then_some(core::TopKIds { teacher: &teacher, student: &student });
        let input = core::ForwardKlTopKInput { log_probs, teacher_log_probs, k, ids };
        let output = core::ForwardKlTopKOutput { losses: &mut losses, grad };
        result = core::forward_kl_topk(batch, input, &config, output)?;
        Ok(())
    })?;
    let overlap = match result.overlap {
        Some(overlap) => object([("ratio", overlap.ratio.into()), ("tokenAdvantage", overlap.token_advantage.into())])?,
        None => JsValue::NULL,
    };
    object([
        ("loss", result.loss.into()),
        ("lossMin", result.loss_min.into()),
        ("lossMax", result.loss_max.into()),
        ("studentMass", spread(result.student_mass)?),
        ("teacherMass", spread(result.teacher_mass)?),
        ("overlap", overlap),
        ("losses", R::array(&losses)),
        ("grad", grad),
    ])
}

fn topk_jsd<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, weights, k) = (nested_aggregate(config, TOKEN_MEAN)?, weights::<R>(input)?, k(input)?);
    let (config, mut loss) = (config::topk_jsd(config, aggregate.view()?)?, 0.0);
    let inputs = arrays::<R, 2>(input, ["logProbs", "teacherLogProbs"])?;
    let [grad] = call(batch, inputs, Size::First, &mut |batch, [log_probs, teacher_log_probs], [grad]| {
        let input = core::TopKInput { log_probs, teacher_log_probs, k, weights: weights.as_deref() };
        loss = core::topk_jsd(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([("loss", loss.into()), ("grad", grad)])
}

fn mixed_kl_topk<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, k, len) = (nested_aggregate(config, TOKEN_MEAN)?, k(input)?, slots(batch)?);
    let (config, mut loss) = (config::mixed_kl_topk(config, aggregate.view()?)?, 0.0);
    let entropies = match Fields::input("input", input)?.optional_array::<R>("entropies")? {
        Some(entropies) => entropies,
        // not read where the student's entries are scaled
        None if config.outside == core::OutsideTopK::Renormalize => zeros(len)?,
        None => Vec::new(),
    };
    let mut grad_entropies: Vec<R> = zeros(len)?;
    let inputs = arrays::<R, 2>(input, ["logProbs", "teacherLogProbs"])?;
    let [grad] = call(batch, inputs, Size::First, &mut |batch, [log_probs, teacher_log_probs], [grad]| {
        let input = core::MixedKlInput { log_probs, teacher_log_probs, k, entropies: &entropies };
        let output = core::MixedKlOutput { grad, grad_entropies: &mut grad_entropies };
        loss = core::mixed_kl_topk(batch, input, &config, output)?;
        Ok(())
    })?;
    object([("loss", loss.into()), ("grad", grad), ("gradEntropies", R::array(&grad_entropies))])
}

fn generalized_jsd<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, weights) = (nested_aggregate(config, TOKEN_MEAN)?, weights::<R>(input)?);
    let (config, vocab) = (config::jsd(config, aggregate.view()?)?, crate::policy::vocab(input)?);
    let mut loss = 0.0;
    let inputs = arrays::<R, 2>(input, ["logits", "teacherLogits"])?;
    let [grad] = call(batch, inputs, Size::First, &mut |batch, [logits, teacher_logits], [grad]| {
        let input = core::JsdInput { logits, teacher_logits, vocab, weights: weights.as_deref() };
        loss = core::generalized_jsd(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([("loss", loss.into()), ("gradLogits", grad)])
}

fn bypass_loss<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let fields = Fields::config("config", config, &["weights", "rejection", "form", "policy", "divisor"])?;
    let (rollout, policy) = (fields.get("weights")?, fields.get("policy")?);
    let rollout = if rollout.is_undefined() { None } else { Some(config::rollout(&rollout)?) };
    let (criteria, divisor) = config::rejection(&fields.get("rejection")?)?;
    let aggregate = nested_aggregate(&policy, TOKEN_MEAN)?;
    let form = match fields.chosen("form", &["ppo-clip", "reinforce"])? {
        Some(1) => core::BypassForm::Reinforce(config::reinforce(&policy, aggregate.view()?)?),
        _ => core::BypassForm::PpoClip(config::ppo(&policy, aggregate.view()?)?),
    };
    let config = core::BypassConfig {
        weights: rollout,
        rejection: RejectionConfig { criteria: &criteria, divisor },
        form,
        divisor: fields.choice_or("divisor", tokenwise::Divisor::default())?,
    };
    let len = slots(batch)?;
    let (mut weights, mut keep): (Vec<R>, Vec<bool>) = (zeros(len)?, zeros(len)?);
    let (mut per_criterion, mut result) = (zeros(criteria.len())?, None);
    let inputs = arrays::<R, 3>(input, ["logProbs", "oldLogProbs", "advantages"])?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [log_probs, old_log_probs, advantages], [grad]| {
        let input = core::PolicyLossInput { log_probs, old_log_probs, advantages, weights: None };
        let output =
            core::BypassOutput { weights: &mut weights, keep: &mut keep, per_criterion: &mut per_criterion, grad };
        result = Some(core::bypass_loss(batch, input, &config, output)?);
        Ok(())
    })?;
    let policy = result.map(|result| result.policy).unwrap_or_default();
    let of_weights = result.and_then(|result| result.weights);
    let of_rejection = result.and_then(|result| result.rejection);
    let metrics = numbers(
        result
            .iter()
            .flat_map(|result| result.mismatch.entries())
            .chain(of_weights.iter().flat_map(|metrics| metrics.entries()))
            .chain(per_criterion.iter().flat_map(CriterionMetrics::entries))
            .chain(of_rejection.iter().flat_map(RejectionTotals::entries)),
    )?;
    object([
        ("loss", policy.loss.into()),
        ("clipFraction", policy.clip_fraction.into()),
        ("clipFractionLower", policy.clip_fraction_lower.into()),
        ("kl", policy.kl.into()),
        ("metrics", metrics),
        ("weights", R::array(&weights)),
        ("keep", flag_array(&keep)),
        ("grad", grad),
    ])
}
