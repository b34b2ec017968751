//! **Stage 5 of 7 — loss.**

#[cfg(feature = "full")]
pub(crate) mod distill;
#[cfg(feature = "full")]
pub(crate) mod dual_game;
pub(crate) mod policy;

use alloc::vec::Vec;

use tokenwise::loss as core;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    error::Result,
    export::export,
    js,
    put::numbers,
    read::ReadLoss as _,
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("loss.ts");

export! {
    #[cfg(feature = "full")]
    REST = 12;
    aggregate(batch:batch, losses, config?:aggregate) -> (loss, weights:T) => aggregate, aggregateF64;
    group_tokens(batch:batch, groups:groups) -> () => groupTokens;
    value_loss(batch:batch, input{predictions, values, returns}, config:ValueConfig) -> (loss, clip_fraction, grad:T)
        => valueLoss, valueLossF64;
    entropy_bonus(batch:batch, entropy, config:EntropyBonusConfig) -> (loss, grad:T) => entropyBonus, entropyBonusF64;
}

fn aggregate(call: &mut Call<'_>) -> Result {
    let (config, losses) = (call.aggregate(core::Aggregate::default()), call.real());
    js::put(core::aggregate(call.batch, losses, &config, call.real())?);
    Ok(())
}

fn group_tokens(call: &mut Call<'_>) -> Result {
    let groups = call.groups()?;
    let mut counts: Vec<u64> = zeros(groups.count());
    core::group_tokens(call.batch, &groups, &mut counts)?;
    // a batch in memory has fewer than 2³² tokens
    js::words(&counts.into_iter().map(|count| count as u32).collect::<Vec<_>>());
    Ok(())
}

fn value_loss(call: &mut Call<'_>) -> Result {
    let config = core::ValueConfig::read(call);
    let input = core::ValueLossInput { predictions: call.real(), values: call.real(), returns: call.real() };
    let result = core::value_loss(call.batch, input, &config, call.real())?;
    numbers(&[result.loss, result.clip_fraction]);
    Ok(())
}

fn entropy_bonus(call: &mut Call<'_>) -> Result {
    let (config, entropy) = (core::EntropyBonusConfig::read(call), call.real());
    js::put(core::entropy_bonus(call.batch, entropy, &config, call.real())?);
    Ok(())
}
