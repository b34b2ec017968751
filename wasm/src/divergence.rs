//! **Stage 2 of 7 — divergence.**

use tokenwise::{divergence as core, Either};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::Call,
    error::Result,
    export::export,
    read::{read, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("divergence.ts");

export! {
    CHAIN = 3;
    kl_estimate(batch:batch, input{log_probs, ref_log_probs}, config:KlConfig) -> (:T) => klEstimate, klEstimateF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 4;
    kl_gradient(batch:batch, input{log_probs, ref_log_probs}, config:KlConfig) -> (:T) => klGradient, klGradientF64;
    kl_importance_weighted(batch:batch, input{log_probs, ref_log_probs, old_log_probs}, config:KlWeightedConfig) -> (:T)
        => klImportanceWeighted, klImportanceWeightedF64;
    kl_importance_weighted_gradient(
        batch:batch, input{log_probs, ref_log_probs, old_log_probs, grad_kl}, config:KlWeightedConfig) -> (:T)
        => klImportanceWeightedGradient, klImportanceWeightedGradientF64;
    kl_exact(batch:batch, input{logits, ref_logits, vocab:size}, config:PolicyConfig) -> (:T) => klExact, klExactF64;
    kl_exact_gradient(batch:batch, input{logits, ref_logits, vocab:size, grad_kl}, config:PolicyConfig) -> (:F)
        => klExactGradient, klExactGradientF64;
}

pub(crate) fn kl_input<'a>(call: &mut Call<'a>) -> core::KlInput<'a, Either> {
    core::KlInput { log_probs: call.real(), ref_log_probs: call.real() }
}

fn kl_estimate(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), kl_input(call));
    core::kl_estimate(call.batch, input, &config, call.real())
}

fn kl_gradient(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), kl_input(call));
    core::kl_gradient(call.batch, input, &config, call.real())
}

fn kl_exact(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::KlExactInput { logits: call.real(), ref_logits: call.real(), vocab: size() };
    core::kl_exact(call.batch, input, &config, call.real())
}

fn kl_exact_gradient(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::KlExactGradientInput {
        logits: call.real(),
        ref_logits: call.real(),
        vocab: size(),
        grad_kl: call.real(),
    };
    core::kl_exact_gradient(call.batch, input, &config, call.real())
}

fn kl_importance_weighted(call: &mut Call<'_>) -> Result {
    let config = read();
    let input =
        core::KlWeightedInput { log_probs: call.real(), ref_log_probs: call.real(), old_log_probs: call.real() };
    core::kl_importance_weighted(call.batch, input, &config, call.real())
}

fn kl_importance_weighted_gradient(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::KlWeightedGradientInput {
        log_probs: call.real(),
        ref_log_probs: call.real(),
        old_log_probs: call.real(),
        grad_kl: call.real(),
    };
    core::kl_importance_weighted_gradient(call.batch, input, &config, call.real())
}
