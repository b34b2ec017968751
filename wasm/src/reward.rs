//! **Stage 3 of 7 — reward.**

use alloc::vec::Vec;

use tokenwise::reward as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{flags, read, Real},
    batch::OwnedGroups,
    call::{array, arrays, call, call_free, call_one, Size},
    config,
    error::Result,
    export::export,
    object::{number, object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("reward.ts");

export! {
    CHAIN = 5;
    place_scores(batch, scores) => placeScores, placeScoresF64;
    shape_rewards(batch, input, beta) => shapeRewards, shapeRewardsF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 6;
    kl_in_reward(batch, input, config) => klInReward, klInRewardF64;
    kl_in_scores(batch, input, beta) => klInScores, klInScoresF64;
    clipped_rewards(batch, input, config) => clippedRewards, clippedRewardsF64;
    overlong_penalty(input, config) => overlongPenalty, overlongPenaltyF64;
    repetition_penalty(batch, tokens, config) => repetitionPenalty, repetitionPenaltyF64;
    length_penalty_group(groups, input, config) => lengthPenaltyGroup, lengthPenaltyGroupF64;
    stop_properly_penalty(input, coefficient) => stopProperlyPenalty, stopProperlyPenaltyF64;
    missing_eos_penalty(input, penalty) => missingEosPenalty, missingEosPenaltyF64;
    reward_scale_clip(scores, scale) => rewardScaleClip, rewardScaleClipF64;
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

fn kl_in_scores<R: Real>(batch: &JsValue, input: &JsValue, beta: &JsValue) -> Result<JsValue> {
    let beta = number("beta", beta)?;
    let inputs = arrays::<R, 3>(input, ["scores", "oldLogProbs", "refLogProbs"])?;
    call_one(batch, inputs, Size::Sequences, &mut |batch, [scores, old_log_probs, ref_log_probs], [out]| {
        core::kl_in_scores(batch, core::KlInScoresInput { scores, old_log_probs, ref_log_probs }, beta, out)
    })
}

fn clipped_rewards<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::clipped_rewards(config)?;
    call_one(batch, arrays::<R, 2>(input, ["scores", "kl"])?, Size::Tokens, &mut |batch, [scores, kl], [rewards]| {
        core::clipped_rewards(batch, core::ClippedRewardsInput { scores, kl }, &config, rewards)
    })
}

fn repetition_penalty<R: Real>(batch: &JsValue, tokens: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (tokens, config) = (read::<u32>("tokens", tokens)?, config::repetition(config)?);
    call_one::<R, 0>(batch, [], Size::Sequences, &mut |batch, [], [out]| {
        core::repetition_penalty(batch, &tokens, &config, out)
    })
}

fn length_penalty_group<R: Real>(groups: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::group_length(config)?);
    let (groups, fields) = (groups.view()?, Fields::input("input", input)?);
    let (outputs, inputs, turns) =
        (fields.array::<u32>("outputs")?, fields.array::<u32>("inputs")?, fields.array::<u32>("turns")?);
    call_free::<R, 1>(arrays(input, ["scores"])?, &mut |[scores], out| {
        let input = core::GroupLengthInput { scores, outputs: &outputs, inputs: &inputs, turns: &turns };
        core::length_penalty_group(&groups, input, &config, out)
    })
}

fn stop_properly_penalty<R: Real>(input: &JsValue, coefficient: &JsValue) -> Result<JsValue> {
    let coefficient = number("coefficient", coefficient)?;
    let truncated = flags("truncated", &Fields::input("input", input)?.get("truncated")?)?;
    call_free::<R, 1>(arrays(input, ["scores"])?, &mut |[scores], out| {
        core::stop_properly_penalty(core::TruncatedInput { scores, truncated: &truncated }, coefficient, out)
    })
}

fn missing_eos_penalty<R: Real>(input: &JsValue, penalty: &JsValue) -> Result<JsValue> {
    let penalty = number("penalty", penalty)?;
    let ended = flags("ended", &Fields::input("input", input)?.get("ended")?)?;
    call_free::<R, 1>(arrays(input, ["scores"])?, &mut |[scores], out| {
        core::missing_eos_penalty(core::MissingEosInput { scores, ended: &ended }, penalty, out)
    })
}

fn reward_scale_clip<R: Real>(scores: &JsValue, scale: &JsValue) -> Result<JsValue> {
    let (scale, mut clipped) = (config::reward_scale(scale)?, 0.0);
    let scores = call_free::<R, 1>(array("scores", scores)?, &mut |[scores], out| {
        clipped = core::reward_scale_clip(scores, &scale, out)?;
        Ok(())
    })?;
    object([("scores", scores), ("clipFraction", clipped.into())])
}
