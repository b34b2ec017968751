//! **Stage 3 of 7 — reward.**

use tokenwise::reward as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::Real,
    call::{array, arrays, call, call_free, call_one, Size},
    config,
    error::Result,
    export::export,
    object::{number, object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("reward.ts");

export! {
    place_scores(batch, scores) => placeScores, placeScoresF64;
    shape_rewards(batch, input, beta) => shapeRewards, shapeRewardsF64;
    kl_in_reward(batch, input, config) => klInReward, klInRewardF64;
    overlong_penalty(input, config) => overlongPenalty, overlongPenaltyF64;
}

fn place_scores<R: Real>(batch: &JsValue, scores: &JsValue) -> Result<JsValue> {
    call_one::<R, 1>(batch, array("scores", scores)?, Size::Tokens, &mut |batch, [scores], [out]| {
        core::place_scores(batch, scores, out)
    })
}

fn shape_rewards<R: Real>(batch: &JsValue, input: &JsValue, beta: &JsValue) -> Result<JsValue> {
    let beta = number("beta", beta)?;
    let inputs = arrays::<R, 2>(input, ["scores", "kl"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [scores, kl], [rewards]| {
        core::shape_rewards(batch, core::ShapeInput { scores, kl }, beta, rewards)
    })
}

fn kl_in_reward<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, mut mean_kl) = (config::kl_reward(config)?, 0.0);
    let inputs = arrays::<R, 3>(input, ["scores", "oldLogProbs", "refLogProbs"])?;
    let [rewards] =
        call(batch, inputs, Size::Tokens, &mut |batch, [scores, old_log_probs, ref_log_probs], [rewards]| {
            let input = core::KlInRewardInput { scores, old_log_probs, ref_log_probs };
            mean_kl = core::kl_in_reward(batch, input, &config, rewards)?;
            Ok(())
        })?;
    object([("rewards", rewards), ("meanKl", mean_kl.into())])
}

fn overlong_penalty<R: Real>(input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::overlong(config)?;
    let lengths: Vec<u32> = Fields::input("input", input)?.array("lengths")?;
    call_free::<R, 1>(arrays(input, ["scores"])?, &mut |[scores], out| {
        core::overlong_penalty(core::OverlongInput { scores, lengths: &lengths }, &config, out)
    })
}
