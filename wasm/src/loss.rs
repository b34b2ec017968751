//! **Stage 5 of 7 — loss.**

#[cfg(feature = "full")]
pub(crate) mod distill;
#[cfg(feature = "full")]
pub(crate) mod dual_game;
pub(crate) mod policy;

use alloc::vec::Vec;

use tokenwise::loss as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{zeros, Element, Real},
    batch::{Owned, OwnedGroups},
    call::{array, arrays, call, Size},
    config::{self, nested_aggregate, OwnedAggregate, TOKEN_MEAN},
    error::Result,
    export::export,
    object::object,
};

#[cfg(feature = "full")]
pub(crate) use dual_game::OwnedWeight;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("loss.ts");

export! {
    #[cfg(feature = "full")]
    REST = 12;
    aggregate(batch, losses, config) => aggregate, aggregateF64;
    group_tokens(batch, groups) => groupTokens;
    value_loss(batch, input, config) => valueLoss, valueLossF64;
    entropy_bonus(batch, entropy, config) => entropyBonus, entropyBonusF64;
}

fn aggregate<R: Real>(batch: &JsValue, losses: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = OwnedAggregate::read("config", config, TOKEN_MEAN)?;
    let (config, mut loss) = (aggregate.view()?, 0.0);
    let inputs = array::<R>("losses", losses)?;
    let [weights] = call(batch, inputs, Size::Tokens, &mut |batch, [losses], [weights]| {
        loss = core::aggregate(batch, losses, &config, weights)?;
        Ok(())
    })?;
    object([("loss", loss.into()), ("weights", weights)])
}

fn group_tokens(batch: &JsValue, groups: &JsValue) -> Result<JsValue> {
    let (batch, groups) = (Owned::read(batch)?, OwnedGroups::read("groups", groups)?);
    let groups = groups.view()?;
    let mut counts = zeros(groups.count())?;
    core::group_tokens(&batch.view()?, &groups, &mut counts)?;
    // a batch in memory has fewer than 2³² tokens
    let counts: Vec<u32> = counts.into_iter().map(|count: u64| count as u32).collect();
    Ok(u32::array(&counts))
}

fn value_loss<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = nested_aggregate(config, TOKEN_MEAN)?;
    let (config, mut result) = (config::value(config, aggregate.view()?)?, core::ValueLoss::default());
    let inputs = arrays::<R, 3>(input, ["predictions", "values", "returns"])?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [predictions, values, returns], [grad]| {
        let input = core::ValueLossInput { predictions, values, returns };
        result = core::value_loss(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([("loss", result.loss.into()), ("clipFraction", result.clip_fraction.into()), ("grad", grad)])
}

fn entropy_bonus<R: Real>(batch: &JsValue, entropy: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = nested_aggregate(config, TOKEN_MEAN)?;
    let (config, mut loss) = (config::entropy_bonus(config, aggregate.view()?)?, 0.0);
    let inputs = array::<R>("entropy", entropy)?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [entropy], [grad]| {
        loss = core::entropy_bonus(batch, entropy, &config, grad)?;
        Ok(())
    })?;
    object([("loss", loss.into()), ("grad", grad)])
}
