//! **Stage 1 of 7 — policy.**

use tokenwise::{policy as core, Either};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    error::Result,
    export::export,
    put::reals,
    read::{read, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("policy.ts");

// `singles`: an array in `f32` goes to the formulas compiled for it
export! {
    CHAIN = 1;
    shift(batch:batch, input{raw, width:size, raw_layout:layout}) -> () => shift, shiftF64;
    token_log_probs(batch:batch, input{logits:singles, vocab:size, tokens:words}, config:PolicyConfig) -> (:T)
        => tokenLogProbs, tokenLogProbsF64;
    log_probs_and_entropy(batch:batch, input{logits:singles, vocab:size, tokens:words}, config:PolicyConfig)
        -> (log_probs:T, entropy:T) => logProbsAndEntropy, logProbsAndEntropyF64;
    entropy(batch:batch, input{logits:singles, vocab:size}, config:PolicyConfig) -> (:T) => entropy, entropyF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 2;
    sum_squared_probs(batch:batch, input{logits, vocab:size}, config:PolicyConfig) -> (:T)
        => sumSquaredProbs, sumSquaredProbsF64;
    topk_log_probs(batch:batch, input{logits, vocab:size, tokens:words, k:size}, config:PolicyConfig) -> ()
        => topkLogProbs, topkLogProbsF64;
    topk_logits_gradient(batch:batch, input{logits, vocab:size, tokens:words, k:size, grad_log_probs}, config:PolicyConfig)
        -> (:F) => topkLogitsGradient, topkLogitsGradientF64;
    logits_gradient(batch:batch, input{logits, vocab:size, tokens:words, grad_log_probs, grad_entropy}, config:PolicyConfig)
        -> (:F) => logitsGradient, logitsGradientF64;
}

fn shift(call: &mut Call<'_>) -> Result {
    let (raw, width, raw_layout) = (call.real(), size(), call.layout()?);
    let responses = call.batch.layout();
    // the layouts alone: once they fit, an output longer than `raw` means that `raw` is too short, which the core says best
    tokenwise::shift::<Either>(&responses, &raw_layout, &[], 0, &mut [])?;
    let mut out = zeros(responses.tokens().checked_mul(width).filter(|&len| len <= raw.len()).unwrap_or(0));
    tokenwise::shift(&responses, &raw_layout, raw, width, &mut out)?;
    reals(out);
    Ok(())
}

fn token_log_probs(call: &mut Call<'_>) -> Result {
    let config = read();
    if Either::is_single() {
        let input = core::LogProbInput { logits: call.single(), vocab: size(), tokens: call.words() };
        return core::single::token_log_probs(call.batch, input, &config, call.single());
    }
    let input = core::LogProbInput { logits: call.real(), vocab: size(), tokens: call.words() };
    core::token_log_probs(call.batch, input, &config, call.real())
}

fn log_probs_and_entropy(call: &mut Call<'_>) -> Result {
    let config = read();
    if Either::is_single() {
        let input = core::LogProbInput { logits: call.single(), vocab: size(), tokens: call.words() };
        let output = core::LogProbOutput { log_probs: call.single(), entropy: call.single() };
        return core::single::log_probs_and_entropy(call.batch, input, &config, output);
    }
    let input = core::LogProbInput { logits: call.real(), vocab: size(), tokens: call.words() };
    let output = core::LogProbOutput { log_probs: call.real(), entropy: call.real() };
    core::log_probs_and_entropy(call.batch, input, &config, output)
}

fn entropy(call: &mut Call<'_>) -> Result {
    let config = read();
    if Either::is_single() {
        let input = core::LogitsInput { logits: call.single(), vocab: size() };
        return core::single::entropy(call.batch, input, &config, call.single());
    }
    let input = core::LogitsInput { logits: call.real(), vocab: size() };
    core::entropy(call.batch, input, &config, call.real())
}

fn sum_squared_probs(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), core::LogitsInput { logits: call.real(), vocab: size() });
    core::sum_squared_probs(call.batch, input, &config, call.real())
}

fn logits_gradient(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::LogitsGradientInput {
        logits: call.real(),
        vocab: size(),
        tokens: call.words(),
        grad_log_probs: call.real(),
        grad_entropy: call.real(),
    };
    core::logits_gradient(call.batch, input, &config, call.real())
}

fn topk_log_probs(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::TopKLogitsInput { logits: call.real(), vocab: size(), tokens: call.words(), k: size() };
    let mut out = zeros(input.tokens.len());
    core::topk_log_probs(call.batch, input, &config, &mut out)?;
    reals(out);
    Ok(())
}

fn topk_logits_gradient(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::TopKGradientInput {
        logits: call.real(),
        vocab: size(),
        tokens: call.words(),
        k: size(),
        grad_log_probs: call.real(),
    };
    core::topk_logits_gradient(call.batch, input, &config, call.real())
}
