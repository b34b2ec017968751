//! **Stage 2 of 7 — divergence.**

use tokenwise::divergence as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::Real,
    call::{arrays, call_one, Size},
    config,
    error::Result,
    export::export,
    policy::vocab,
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("divergence.ts");

export! {
    CHAIN = 3;
    kl_estimate(batch, input, config) => klEstimate, klEstimateF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 4;
    kl_gradient(batch, input, config) => klGradient, klGradientF64;
    kl_importance_weighted(batch, input, config) => klImportanceWeighted, klImportanceWeightedF64;
    kl_importance_weighted_gradient(batch, input, config)
        => klImportanceWeightedGradient, klImportanceWeightedGradientF64;
    kl_exact(batch, input, config) => klExact, klExactF64;
    kl_exact_gradient(batch, input, config) => klExactGradient, klExactGradientF64;
}

fn kl_estimate<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::kl(config, core::KlConfig::default())?;
    let inputs = arrays::<R, 2>(input, ["logProbs", "refLogProbs"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [log_probs, ref_log_probs], [out]| {
        core::kl_estimate(batch, core::KlInput { log_probs, ref_log_probs }, &config, out)
    })
}

fn kl_gradient<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::kl(config, core::KlConfig::default())?;
    let inputs = arrays::<R, 2>(input, ["logProbs", "refLogProbs"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [log_probs, ref_log_probs], [out]| {
        core::kl_gradient(batch, core::KlInput { log_probs, ref_log_probs }, &config, out)
    })
}

fn kl_exact<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, vocab) = (config::policy(config)?, vocab(input)?);
    let inputs = arrays::<R, 2>(input, ["logits", "refLogits"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [logits, ref_logits], [out]| {
        core::kl_exact(batch, core::KlExactInput { logits, ref_logits, vocab }, &config, out)
    })
}

fn kl_exact_gradient<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, vocab) = (config::policy(config)?, vocab(input)?);
    let inputs = arrays::<R, 3>(input, ["logits", "refLogits", "gradKl"])?;
    call_one(batch, inputs, Size::First, &mut |batch, [logits, ref_logits, grad_kl], [grad_logits]| {
        let input = core::KlExactGradientInput { logits, ref_logits, vocab, grad_kl };
        core::kl_exact_gradient(batch, input, &config, grad_logits)
    })
}

fn kl_importance_weighted<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::kl_weighted(config)?;
    let inputs = arrays::<R, 3>(input, ["logProbs", "refLogProbs", "oldLogProbs"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [log_probs, ref_log_probs, old_log_probs], [out]| {
        let input = core::KlWeightedInput { log_probs, ref_log_probs, old_log_probs };
        core::kl_importance_weighted(batch, input, &config, out)
    })
}

fn kl_importance_weighted_gradient<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::kl_weighted(config)?;
    let inputs = arrays::<R, 4>(input, ["logProbs", "refLogProbs", "oldLogProbs", "gradKl"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [log_probs, ref_log_probs, old_log_probs, grad_kl], [grad]| {
        let input = core::KlWeightedGradientInput { log_probs, ref_log_probs, old_log_probs, grad_kl };
        core::kl_importance_weighted_gradient(batch, input, &config, grad)
    })
}
