//! The dual game: its token weights, what they are made of, and the loss.

use tokenwise::{
    loss::{self as core, DualGameInput, StructuralInput, TokenWeight, TokenWeightInput, TrieInput, TrieScratch},
    Either,
};
use wasm_bindgen::prelude::wasm_bindgen;

use super::policy;
use crate::{
    call::{zeros, Call},
    error::Result,
    export::export,
    js,
    put::numbers,
    read::{read, ReadLoss as _},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("dual_game.ts");

declare!("choice TokenWeight |plain|kl-gated|structural");

export! {
    #[cfg(feature = "full")]
    REST = 16;
    token_weights(batch:batch, input{weight:token_weight, ref_log_probs?, log_probs, advantages}) -> (:T)
        => tokenWeights, tokenWeightsF64;
    advantage_jump(batch:batch, advantages) -> (:T) => advantageJump, advantageJumpF64;
    structural_weights(batch:batch, input{log_probs, advantages, complexity}, config:StructuralConfig) -> (:T)
        => structuralWeights, structuralWeightsF64;
    trie_complexity(batch:batch, groups:groups, input{tokens:words, rewards}, config:TrieConfig) -> (:T)
        => trieComplexity, trieComplexityF64;
    dual_game(
        batch:batch, input{weight:token_weight, ref_log_probs?, log_probs, old_log_probs, advantages, weights?},
        config:DualGameConfig) -> (loss, clip_fraction, clip_fraction_upper, clip_fraction_lower, kl, grad:T)
        => dualGame, dualGameF64;
}

/// The fields of an input that the weight is made of: `weight`, with `structural` where it asks for that.
pub(crate) fn token_weight<'a>(call: &mut Call<'a>) -> TokenWeight<'a, Either> {
    match js::index(0) {
        0 => TokenWeight::Plain,
        1 => TokenWeight::KlGated,
        _ => TokenWeight::Structural(call.real()),
    }
}

fn token_weights(call: &mut Call<'_>) -> Result {
    let (weight, ref_log_probs) = (token_weight(call), call.optional_real());
    let input = TokenWeightInput { log_probs: call.real(), ref_log_probs, advantages: call.real(), weight };
    core::token_weights(call.batch, input, call.real())
}

fn advantage_jump(call: &mut Call<'_>) -> Result {
    let advantages = call.real();
    core::advantage_jump(call.batch, advantages, call.real())
}

fn structural_weights(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = StructuralInput { log_probs: call.real(), advantages: call.real(), complexity: call.real() };
    core::structural_weights(call.batch, input, &config, call.real())
}

fn trie_complexity(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), TrieInput { tokens: call.words(), rewards: call.real() });
    let groups = call.groups()?;
    let mut scratch = zeros::<TrieScratch>(groups.sequences());
    core::trie_complexity(call.batch, &groups, input, &config, &mut scratch, call.real())
}

fn dual_game(call: &mut Call<'_>) -> Result {
    let config = core::DualGameConfig::read(call);
    let (weight, ref_log_probs) = (token_weight(call), call.optional_real());
    let input = DualGameInput { policy: policy::input(call), ref_log_probs, weight };
    let result = core::dual_game(call.batch, input, &config, call.real())?;
    numbers(&[result.loss, result.clip_fraction, result.clip_fraction_upper, result.clip_fraction_lower, result.kl]);
    Ok(())
}
