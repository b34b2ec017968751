//! **Stage 4 of 7 — advantage.**

#[cfg(feature = "full")]
pub(crate) mod group;
#[cfg(feature = "full")]
pub(crate) mod trace;

use tokenwise::{advantage as core, Either};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::Call,
    error::Result,
    export::export,
    read::{read, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("advantage.ts");

export! {
    CHAIN = 7;
    discounted_returns(batch:batch, input{rewards, bootstrap}, config:ReturnsConfig) -> (:T)
        => discountedReturns, discountedReturnsF64;
    gae(batch:batch, input{rewards, values, bootstrap}, config:GaeConfig) -> (advantages:T, returns:T) => gae, gaeF64;
    whiten(batch:batch, values, config:WhitenConfig) -> (:T) => whiten, whitenF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 8;
    monte_carlo_advantage(batch:batch, input{rewards, values, bootstrap}, config:ReturnsConfig)
        -> (advantages:T, returns:T) => monteCarloAdvantage, monteCarloAdvantageF64;
    uniform_credit(batch:batch, scores) -> (:T) => uniformCredit, uniformCreditF64;
    last_k_credit(batch:batch, scores, k:size) -> (:T) => lastKCredit, lastKCreditF64;
    attention_credit(batch:batch, input{scores, weights}) -> (:T) => attentionCredit, attentionCreditF64;
    broadcast(batch:batch, values) -> (:T) => broadcast, broadcastF64;
    sequence_sums(batch:batch, rewards) -> (:S) => sequenceSums, sequenceSumsF64;
}

fn returns_input<'a>(call: &mut Call<'a>) -> core::ReturnsInput<'a, Either> {
    core::ReturnsInput { rewards: call.real(), bootstrap: call.real() }
}

fn gae_input<'a>(call: &mut Call<'a>) -> core::GaeInput<'a, Either> {
    core::GaeInput { rewards: call.real(), values: call.real(), bootstrap: call.real() }
}

fn discounted_returns(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), returns_input(call));
    core::discounted_returns(call.batch, input, &config, call.real())
}

fn gae(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), gae_input(call));
    core::gae(call.batch, input, &config, core::GaeOutput { advantages: call.real(), returns: call.real() })
}

fn monte_carlo_advantage(call: &mut Call<'_>) -> Result {
    let (config, core::GaeInput { rewards, values, bootstrap }) = (read(), gae_input(call));
    let output = core::MonteCarloOutput { advantages: call.real(), returns: call.real() };
    core::monte_carlo_advantage(call.batch, core::MonteCarloInput { rewards, values, bootstrap }, &config, output)
}

fn uniform_credit(call: &mut Call<'_>) -> Result {
    let scores = call.real();
    core::uniform_credit(call.batch, scores, call.real())
}

fn last_k_credit(call: &mut Call<'_>) -> Result {
    let (k, scores) = (size(), call.real());
    core::last_k_credit(call.batch, scores, k, call.real())
}

fn attention_credit(call: &mut Call<'_>) -> Result {
    let input = core::AttentionInput { scores: call.real(), weights: call.real() };
    core::attention_credit(call.batch, input, call.real())
}

fn broadcast(call: &mut Call<'_>) -> Result {
    let values = call.real();
    core::broadcast(call.batch, values, call.real())
}

fn sequence_sums(call: &mut Call<'_>) -> Result {
    let rewards = call.real();
    core::sequence_sums(call.batch, rewards, call.real())
}

fn whiten(call: &mut Call<'_>) -> Result {
    let (config, values) = (read(), call.real());
    core::whiten(call.batch, values, &config, call.real())
}
