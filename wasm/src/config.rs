//! Reading config objects: every key optional, with the core's own default.

use tokenwise::{
    divergence::{KlBounds, KlConfig, KlEstimator, KlGradient, KlWeight, KlWeightedConfig},
    metric::{ClipConfig, ExplainedVarianceConfig, KlUse, TrlConfig, TrlLevel, TrlScale},
    policy::PolicyConfig,
    Divisor, Spread,
};
use wasm_bindgen::JsValue;

use crate::{
    error::Result,
    object::{Choice, Fields},
};

macro_rules! choices {
    ($($type:ident { $($name:literal => $value:ident),+ })+) => {$(
        impl Choice for $type {
            const NAMES: &'static [&'static str] = &[$($name),+];
            const VALUES: &'static [Self] = &[$(Self::$value),+];
        }
    )+};
}

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

/// Reads a config, once for both precisions, whose fields are all plain: `key: field by reader;` after the name of the function.
macro_rules! plain_config {
    ($($(#[$doc:meta])* $name:ident -> $type:ident { $($key:literal => $field:ident by $reader:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub(crate) fn $name(value: &JsValue) -> Result<$type> {
            let fields = Fields::config("config", value, &[$($key),+])?;
            let default = $type::default();
            Ok($type { $($field: fields.$reader($key, default.$field)?),+ })
        }
    )+};
}

/// As `plain_config!`, for configs that hold an aggregation: it is read before, because they borrow it.
macro_rules! loss_config {
    ($($name:ident -> $type:ident { $($key:literal => $field:ident by $reader:ident),* $(,)? })+) => {$(
        #[inline(never)]
        pub(crate) fn $name<'a>(value: &JsValue, aggregate: Aggregate<'a>) -> Result<$type<'a>> {
            let fields = Fields::config("config", value, &[$($key,)* "aggregate"])?;
            let default = $type::default();
            Ok($type { $($field: fields.$reader($key, default.$field)?,)* aggregate })
        }
    )+};
}

// below the macros, which they use
mod advantage;
mod aggregate;
mod control;
mod distill;
mod loss;
mod reward;
mod rollout;

pub(crate) use {advantage::*, aggregate::*, control::*, distill::*, loss::*, reward::*, rollout::*};

plain_config! {
    policy -> PolicyConfig { "temperature" => temperature by number_or }
    explained_variance -> ExplainedVarianceConfig {
        "epsilon" => epsilon by number_or,
        "spread" => spread by choice_or,
    }
    clip -> ClipConfig {
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "dualClip" => dual_clip by dual_clip_or,
        "divisor" => divisor by choice_or,
    }
    trl -> TrlConfig {
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "dualClip" => dual_clip by dual_clip_or,
        "level" => level by choice_or,
        "weightLevel" => weight_level by choice_or,
        "scale" => scale by choice_or,
        "entropyCoefficient" => entropy_coefficient by nullable_or,
        "tokensSeen" => tokens_seen by count_or,
    }
    kl_weighted -> KlWeightedConfig { "weight" => weight by choice_or, "kl" => kl by kl_or }
}

pub(crate) fn kl(value: &JsValue, default: KlConfig) -> Result<KlConfig> {
    let fields = Fields::config("config", value, &["estimator", "gradient", "bounds"])?;
    Ok(KlConfig {
        estimator: fields.choice_or("estimator", default.estimator)?,
        gradient: fields.choice_or("gradient", default.gradient)?,
        bounds: fields.choice_or("bounds", default.bounds)?,
    })
}

impl Fields<'_> {
    pub(crate) fn kl_or(&self, key: &str, default: KlConfig) -> Result<KlConfig> {
        kl(&self.get(key)?, default)
    }
}

/// `{ divisor }`.
pub(crate) fn divisor(value: &JsValue) -> Result<Divisor> {
    Fields::config("config", value, &["divisor"])?.choice_or("divisor", Divisor::default())
}

/// `{ spread }`.
pub(crate) fn spread(value: &JsValue) -> Result<Spread> {
    Fields::config("config", value, &["spread"])?.choice_or("spread", Spread::default())
}

/// `{ spread, divisor }`.
pub(crate) fn spread_and_divisor(value: &JsValue) -> Result<(Spread, Divisor)> {
    let fields = Fields::config("config", value, &["spread", "divisor"])?;
    Ok((fields.choice_or("spread", Spread::default())?, fields.choice_or("divisor", Divisor::default())?))
}
