//! **Stage 3 of 7 — reward.**

use tokenwise::reward as core;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::Call,
    config,
    error::Result,
    export::export,
    js,
    read::{number, read},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("reward.ts");

export! {
    CHAIN = 5;
    place_scores(batch:batch, scores) -> (:T) => placeScores, placeScoresF64;
    shape_rewards(batch:batch, input{scores, kl}, beta:number) -> (:T) => shapeRewards, shapeRewardsF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 6;
    kl_in_reward(batch:batch, input{scores, old_log_probs, ref_log_probs}, config:KlRewardConfig)
        -> (rewards:T, mean_kl) => klInReward, klInRewardF64;
    kl_in_scores(batch:batch, input{scores, old_log_probs, ref_log_probs}, beta:number) -> (:S)
        => klInScores, klInScoresF64;
    clipped_rewards(batch:batch, input{scores, kl}, config:ClippedRewardsConfig) -> (:T)
        => clippedRewards, clippedRewardsF64;
    overlong_penalty(input{lengths:words, scores}, config:OverlongConfig) -> (:F) => overlongPenalty, overlongPenaltyF64;
    repetition_penalty(batch:batch, tokens:words, config:RepetitionConfig) -> (:S)
        => repetitionPenalty, repetitionPenaltyF64;
    length_penalty_group(groups:groups, input{outputs:words, inputs:words, turns:words, scores}, config:GroupLengthConfig)
        -> (:F) => lengthPenaltyGroup, lengthPenaltyGroupF64;
    stop_properly_penalty(input{truncated:flags, scores}, coefficient:number) -> (:F)
        => stopProperlyPenalty, stopProperlyPenaltyF64;
    missing_eos_penalty(input{ended:flags, scores}, penalty:number) -> (:F) => missingEosPenalty, missingEosPenaltyF64;
    reward_scale_clip(scores, scale:RewardScale) -> (scores:F, clip_fraction) => rewardScaleClip, rewardScaleClipF64;
}

fn place_scores(call: &mut Call<'_>) -> Result {
    let scores = call.real();
    core::place_scores(call.batch, scores, call.real())
}

fn shape_rewards(call: &mut Call<'_>) -> Result {
    let (beta, input) = (number(), core::ShapeInput { scores: call.real(), kl: call.real() });
    core::shape_rewards(call.batch, input, beta, call.real())
}

fn kl_in_reward(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::KlInRewardInput { scores: call.real(), old_log_probs: call.real(), ref_log_probs: call.real() };
    js::put(core::kl_in_reward(call.batch, input, &config, call.real())?);
    Ok(())
}

fn overlong_penalty(call: &mut Call<'_>) -> Result {
    let config = read();
    let (lengths, scores) = (call.words(), call.real());
    core::overlong_penalty(core::OverlongInput { scores, lengths }, &config, call.real())
}

fn kl_in_scores(call: &mut Call<'_>) -> Result {
    let beta = number();
    let input = core::KlInScoresInput { scores: call.real(), old_log_probs: call.real(), ref_log_probs: call.real() };
    core::kl_in_scores(call.batch, input, beta, call.real())
}

fn clipped_rewards(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), core::ClippedRewardsInput { scores: call.real(), kl: call.real() });
    core::clipped_rewards(call.batch, input, &config, call.real())
}

fn repetition_penalty(call: &mut Call<'_>) -> Result {
    let (config, tokens) = (read(), call.words());
    core::repetition_penalty(call.batch, tokens, &config, call.real())
}

fn length_penalty_group(call: &mut Call<'_>) -> Result {
    let config = read();
    let (outputs, inputs, turns, scores) = (call.words(), call.words(), call.words(), call.real());
    let input = core::GroupLengthInput { scores, outputs, inputs, turns };
    core::length_penalty_group(&call.groups()?, input, &config, call.real())
}

fn stop_properly_penalty(call: &mut Call<'_>) -> Result {
    let (coefficient, truncated, scores) = (number(), call.flags(), call.real());
    core::stop_properly_penalty(core::TruncatedInput { scores, truncated }, coefficient, call.real())
}

fn missing_eos_penalty(call: &mut Call<'_>) -> Result {
    let (penalty, ended, scores) = (number(), call.flags(), call.real());
    core::missing_eos_penalty(core::MissingEosInput { scores, ended }, penalty, call.real())
}

fn reward_scale_clip(call: &mut Call<'_>) -> Result {
    let scale = config::reward_scale();
    js::put(core::reward_scale_clip(call.real(), &scale, call.real())?);
    Ok(())
}
