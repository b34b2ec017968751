//! The configs of the rewards and of the controllers.

use tokenwise::{
    control::AdaptiveKlConfig,
    reward::{
        ClippedRewardsConfig, GroupLengthConfig, KlRewardConfig, OverlongConfig, OverlongFloor, RepetitionConfig,
        RewardScale,
    },
};
use wasm_bindgen::JsValue;

use crate::{
    error::{wrong_type, Result},
    object::{tagged, Choice, Fields},
};

choices! {
    OverlongFloor { "unlimited" => Unlimited, "factor" => Factor }
}

plain_config! {
    kl_reward -> KlRewardConfig {
        "beta" => beta by number_or,
        "kl" => kl by kl_or,
        "divisor" => divisor by choice_or,
    }
    overlong -> OverlongConfig {
        "maxLen" => max_len by u32_or,
        "buffer" => buffer by u32_or,
        "factor" => factor by number_or,
        "floor" => floor by choice_or,
    }
    repetition -> RepetitionConfig { "ngram" => ngram by size_or, "penalty" => penalty by number_or }
    group_length -> GroupLengthConfig {
        "outputWeight" => output_weight by number_or,
        "inputWeight" => input_weight by number_or,
        "turnWeight" => turn_weight by number_or,
    }
    clipped_rewards -> ClippedRewardsConfig {
        "beta" => beta by number_or,
        "low" => low by number_or,
        "high" => high by number_or,
    }
    adaptive_kl -> AdaptiveKlConfig {
        "beta" => beta by number_or,
        "target" => target by number_or,
        "horizon" => horizon by number_or,
    }
}

/// There is no default.
pub(crate) fn reward_scale(value: &JsValue) -> Result<RewardScale> {
    let kinds: [(&str, &[&str]); 3] = [
        ("clip", &["low", "high"]),
        ("shift-scale-clip", &["bias", "scale", "bound"]),
        ("map", &["fromLow", "fromHigh", "toLow", "toHigh"]),
    ];
    match tagged("scale", value, &kinds)? {
        Some((0, [low, high, ..])) => Ok(RewardScale::Clip { low, high }),
        Some((1, [bias, scale, bound, ..])) => Ok(RewardScale::ShiftScaleClip { bias, scale, bound }),
        Some((_, [a, b, c, d, ..])) => Ok(RewardScale::Map { from: (a, b), to: (c, d) }),
        None => Err(wrong_type("scale", "an object", value)),
    }
}
