//! The configs of the rewards and of the controllers.

use tokenwise::{
    control::AdaptiveKlConfig,
    reward::{
        ClippedRewardsConfig, GroupLengthConfig, KlRewardConfig, OverlongConfig, OverlongFloor, RepetitionConfig,
        RewardScale,
    },
};

use crate::read::Read;

choices! {
    OverlongFloor { "unlimited" => Unlimited, "factor" => Factor }
}

configs! {
    KlRewardConfig { beta: number, kl: KlConfig, divisor: Divisor }
    OverlongConfig { max_len: size, buffer: size, factor: number, floor: OverlongFloor }
    RepetitionConfig { ngram: size, penalty: number }
    GroupLengthConfig { output_weight: number, input_weight: number, turn_weight: number }
    ClippedRewardsConfig { beta: number, low: number, high: number }
    AdaptiveKlConfig { beta: number, target: number, horizon: number }
}

tagged! {
    RewardScale {
        0 "clip" (low, high) => Self::Clip { low, high },
        1 "shift-scale-clip" (bias, scale, bound) => Self::ShiftScaleClip { bias, scale, bound },
        2 "map" (from_low, from_high, to_low, to_high) => {
            Self::Map { from: (from_low, from_high), to: (to_low, to_high) }
        },
    }
}

/// There is no default; one was given.
pub(crate) fn reward_scale() -> RewardScale {
    RewardScale::read(RewardScale::Clip { low: 0.0, high: 0.0 })
}
