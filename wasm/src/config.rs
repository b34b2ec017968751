//! What every config holds: the keys JavaScript may give, and the core's fields behind them.

use tokenwise::{
    divergence::{KlBounds, KlConfig, KlEstimator, KlGradient, KlWeight, KlWeightedConfig},
    metric::{ClipConfig, ExplainedVarianceConfig, KlUse, TrlConfig, TrlLevel, TrlScale},
    policy::PolicyConfig,
    Divisor, Spread,
};

mod advantage;
mod aggregate;
mod control;
mod distill;
mod loss;
mod reward;
mod rollout;

#[cfg(feature = "full")]
pub(crate) use control::observation;
pub(crate) use {reward::reward_scale, rollout::criteria};

choices! {
    Divisor { "count" => Count, "count-plus-epsilon" => CountPlusEpsilon }
    KlBounds { "unbounded" => Unbounded, "k3-only" => K3Only, "every" => Every }
    KlEstimator { "k1" => K1, "abs" => Abs, "k2" => K2, "k3" => K3 }
    KlGradient { "own" => Own, "straight-through" => StraightThrough }
    KlUse { "reward" => Reward, "loss" => Loss }
    KlWeight {
        "token" => Token, "sequence" => Sequence, "token-bounded" => TokenBounded, "token-finite" => TokenFinite,
        "score-function" => ScoreFunction
    }
    Spread { "population" => Population, "sample" => Sample }
    TrlLevel { "token" => Token, "sequence" => Sequence }
    TrlScale { "group" => Group, "batch" => Batch }
}

configs! {
    PolicyConfig { temperature: number }
    ExplainedVarianceConfig { epsilon: number, spread: Spread }
    ClipConfig { clip_low: number, clip_high: number, dual_clip: dual_clip, divisor: Divisor }
    TrlConfig {
        clip_low: number,
        clip_high: number,
        dual_clip: dual_clip,
        level: TrlLevel,
        weight_level: TrlLevel,
        scale: TrlScale,
        entropy_coefficient: nullable,
        tokens_seen: count,
    }
    KlConfig { estimator: KlEstimator, gradient: KlGradient, bounds: KlBounds }
    KlWeightedConfig { weight: KlWeight, kl: KlConfig }
}

declare!("config DivisorOnly divisor?:Divisor");
declare!("config SpreadOnly spread?:Spread");
declare!("config SpreadAndDivisor spread?:Spread,divisor?:Divisor");
