//! **Stage 4 of 7 — advantage.**

#[cfg(feature = "full")]
pub(crate) mod group;
#[cfg(feature = "full")]
pub(crate) mod trace;

use tokenwise::advantage as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::Real,
    call::{array, arrays, call, call_one, Size},
    config,
    error::Result,
    export::export,
    object::{object, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("advantage.ts");

export! {
    CHAIN = 7;
    discounted_returns(batch, input, config) => discountedReturns, discountedReturnsF64;
    gae(batch, input, config) => gae, gaeF64;
    whiten(batch, values, config) => whiten, whitenF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 8;
    monte_carlo_advantage(batch, input, config) => monteCarloAdvantage, monteCarloAdvantageF64;
    uniform_credit(batch, scores) => uniformCredit, uniformCreditF64;
    last_k_credit(batch, scores, k) => lastKCredit, lastKCreditF64;
    attention_credit(batch, input) => attentionCredit, attentionCreditF64;
    broadcast(batch, values) => broadcast, broadcastF64;
    sequence_sums(batch, rewards) => sequenceSums, sequenceSumsF64;
}

fn discounted_returns<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::returns(config)?;
    let inputs = arrays::<R, 2>(input, ["rewards", "bootstrap"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [rewards, bootstrap], [out]| {
        core::discounted_returns(batch, core::ReturnsInput { rewards, bootstrap }, &config, out)
    })
}

fn gae<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::gae(config)?;
    let inputs = arrays::<R, 3>(input, ["rewards", "values", "bootstrap"])?;
    let [advantages, returns] =
        call(batch, inputs, Size::Tokens, &mut |batch, [rewards, values, bootstrap], [advantages, returns]| {
            let input = core::GaeInput { rewards, values, bootstrap };
            core::gae(batch, input, &config, core::GaeOutput { advantages, returns })
        })?;
    object([("advantages", advantages), ("returns", returns)])
}

fn monte_carlo_advantage<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::returns(config)?;
    let inputs = arrays::<R, 3>(input, ["rewards", "values", "bootstrap"])?;
    let [advantages, returns] =
        call(batch, inputs, Size::Tokens, &mut |batch, [rewards, values, bootstrap], [advantages, returns]| {
            let input = core::MonteCarloInput { rewards, values, bootstrap };
            core::monte_carlo_advantage(batch, input, &config, core::MonteCarloOutput { advantages, returns })
        })?;
    object([("advantages", advantages), ("returns", returns)])
}

fn uniform_credit<R: Real>(batch: &JsValue, scores: &JsValue) -> Result<JsValue> {
    call_one::<R, 1>(batch, array("scores", scores)?, Size::Tokens, &mut |batch, [scores], [out]| {
        core::uniform_credit(batch, scores, out)
    })
}

fn last_k_credit<R: Real>(batch: &JsValue, scores: &JsValue, k: &JsValue) -> Result<JsValue> {
    let k = size("k", k)?;
    call_one::<R, 1>(batch, array("scores", scores)?, Size::Tokens, &mut |batch, [scores], [out]| {
        core::last_k_credit(batch, scores, k, out)
    })
}

fn attention_credit<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    let inputs = arrays::<R, 2>(input, ["scores", "weights"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [scores, weights], [out]| {
        core::attention_credit(batch, core::AttentionInput { scores, weights }, out)
    })
}

fn broadcast<R: Real>(batch: &JsValue, values: &JsValue) -> Result<JsValue> {
    call_one::<R, 1>(batch, array("values", values)?, Size::Tokens, &mut |batch, [values], [out]| {
        core::broadcast(batch, values, out)
    })
}

fn sequence_sums<R: Real>(batch: &JsValue, rewards: &JsValue) -> Result<JsValue> {
    call_one::<R, 1>(batch, array("rewards", rewards)?, Size::Sequences, &mut |batch, [rewards], [out]| {
        core::sequence_sums(batch, rewards, out)
    })
}

fn whiten<R: Real>(batch: &JsValue, values: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::whiten(config)?;
    call_one::<R, 1>(batch, array("values", values)?, Size::Tokens, &mut |batch, [values], [out]| {
        core::whiten(batch, values, &config, out)
    })
}
