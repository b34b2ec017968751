//! **Stage 1 of 7 — policy.**

use alloc::vec::Vec;

use tokenwise::{policy as core, Either};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{zeros, Real},
    batch::{Owned, RawLayout},
    call::{arrays, call, call_one, measure, Size},
    config,
    error::Result,
    export::export,
    object::{object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("policy.ts");

export! {
    CHAIN = 1;
    shift(batch, input) => shift, shiftF64;
    token_log_probs(batch, input, config) => tokenLogProbs, tokenLogProbsF64;
    log_probs_and_entropy(batch, input, config) => logProbsAndEntropy, logProbsAndEntropyF64;
    entropy(batch, input, config) => entropy, entropyF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 2;
    sum_squared_probs(batch, input, config) => sumSquaredProbs, sumSquaredProbsF64;
    topk_log_probs(batch, input, config) => topkLogProbs, topkLogProbsF64;
    topk_logits_gradient(batch, input, config) => topkLogitsGradient, topkLogitsGradientF64;
    logits_gradient(batch, input, config) => logitsGradient, logitsGradientF64;
}

fn shift<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    let (batch, input) = (Owned::read(batch)?, Fields::input("input", input)?);
    let (raw, width) = (input.array::<R>("raw")?, input.size("width")?);
    let raw_layout = RawLayout::read("rawLayout", &input.get("rawLayout")?)?;
    let (responses, raw_layout) = (batch.view()?.layout(), raw_layout.view()?);
    // the layouts alone: once they fit, an output longer than `raw` means that `raw` is too short, which the core says best
    tokenwise::shift::<R>(&responses, &raw_layout, &[], 0, &mut [])?;
    let mut out = zeros(responses.tokens().checked_mul(width).filter(|&len| len <= raw.len()).unwrap_or(0))?;
    tokenwise::shift(&responses, &raw_layout, &raw, width, &mut out)?;
    Ok(R::array(&out))
}

fn token_log_probs<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, (vocab, tokens)) = (config::policy(config)?, vocab_and_tokens(input)?);
    if Either::is_single() {
        return call_one::<f32, 1>(batch, arrays(input, ["logits"])?, Size::Tokens, &mut |batch, [logits], [out]| {
            core::single::token_log_probs(batch, core::LogProbInput { logits, vocab, tokens: &tokens }, &config, out)
        });
    }
    call_one::<R, 1>(batch, arrays(input, ["logits"])?, Size::Tokens, &mut |batch, [logits], [out]| {
        core::token_log_probs(batch, core::LogProbInput { logits, vocab, tokens: &tokens }, &config, out)
    })
}

fn log_probs_and_entropy<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, (vocab, tokens)) = (config::policy(config)?, vocab_and_tokens(input)?);
    let [log_probs, entropy] = if Either::is_single() {
        let inputs = arrays::<f32, 1>(input, ["logits"])?;
        call(batch, inputs, Size::Tokens, &mut |batch, [logits], [log_probs, entropy]| {
            let input = core::LogProbInput { logits, vocab, tokens: &tokens };
            core::single::log_probs_and_entropy(batch, input, &config, core::LogProbOutput { log_probs, entropy })
        })?
    } else {
        let inputs = arrays::<R, 1>(input, ["logits"])?;
        call(batch, inputs, Size::Tokens, &mut |batch, [logits], [log_probs, entropy]| {
            let input = core::LogProbInput { logits, vocab, tokens: &tokens };
            core::log_probs_and_entropy(batch, input, &config, core::LogProbOutput { log_probs, entropy })
        })?
    };
    object([("logProbs", log_probs), ("entropy", entropy)])
}

fn entropy<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, vocab) = (config::policy(config)?, vocab(input)?);
    if Either::is_single() {
        return call_one::<f32, 1>(batch, arrays(input, ["logits"])?, Size::Tokens, &mut |batch, [logits], [out]| {
            core::single::entropy(batch, core::LogitsInput { logits, vocab }, &config, out)
        });
    }
    call_one::<R, 1>(batch, arrays(input, ["logits"])?, Size::Tokens, &mut |batch, [logits], [out]| {
        core::entropy(batch, core::LogitsInput { logits, vocab }, &config, out)
    })
}

fn sum_squared_probs<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, vocab) = (config::policy(config)?, vocab(input)?);
    call_one::<R, 1>(batch, arrays(input, ["logits"])?, Size::Tokens, &mut |batch, [logits], [out]| {
        core::sum_squared_probs(batch, core::LogitsInput { logits, vocab }, &config, out)
    })
}

fn logits_gradient<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, (vocab, tokens)) = (config::policy(config)?, vocab_and_tokens(input)?);
    let inputs = arrays::<R, 3>(input, ["logits", "gradLogProbs", "gradEntropy"])?;
    call_one(batch, inputs, Size::First, &mut |batch, [logits, grad_log_probs, grad_entropy], [grad_logits]| {
        let input = core::LogitsGradientInput { logits, vocab, tokens: &tokens, grad_log_probs, grad_entropy };
        core::logits_gradient(batch, input, &config, grad_logits)
    })
}

fn topk_log_probs<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, (vocab, tokens)) = (config::policy(config)?, vocab_and_tokens(input)?);
    let (k, mut out): (usize, Vec<R>) = (Fields::input("input", input)?.size("k")?, zeros(tokens.len())?);
    measure::<R, 1>(batch, arrays(input, ["logits"])?, &mut |batch, [logits], []| {
        core::topk_log_probs(batch, core::TopKLogitsInput { logits, vocab, tokens: &tokens, k }, &config, &mut out)
    })?;
    Ok(R::array(&out))
}

fn topk_logits_gradient<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, (vocab, tokens)) = (config::policy(config)?, vocab_and_tokens(input)?);
    let k = Fields::input("input", input)?.size("k")?;
    let inputs = arrays::<R, 2>(input, ["logits", "gradLogProbs"])?;
    call_one(batch, inputs, Size::First, &mut |batch, [logits, grad_log_probs], [grad_logits]| {
        let input = core::TopKGradientInput { logits, vocab, tokens: &tokens, k, grad_log_probs };
        core::topk_logits_gradient(batch, input, &config, grad_logits)
    })
}

pub(crate) fn vocab(input: &JsValue) -> Result<usize> {
    Fields::input("input", input)?.size("vocab")
}

fn vocab_and_tokens(input: &JsValue) -> Result<(usize, Vec<u32>)> {
    let input = Fields::input("input", input)?;
    Ok((input.size("vocab")?, input.array("tokens")?))
}
