//! Configs that are a number or an object, and the configs of controllers.

use serde::Deserialize;

use super::{given, Either};
use crate::{
    advantage::PolicyLambda,
    control::{
        AdaptiveKlConfig, BudgetSchedule, BudgetSource, CollapseGuard, DualGameRules, EntropyBudgetConfig, Follow,
        KlControlConfig, LinearKlConfig,
    },
};

/// A fixed λ, or the α of a λ that grows with the length.
pub(crate) type GivenLambda = Either<f64, Alpha>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alpha {
    alpha: f64,
}

impl From<GivenLambda> for PolicyLambda {
    fn from(lambda: GivenLambda) -> Self {
        match lambda {
            Either::Plain(lambda) => Self::Fixed(lambda),
            Either::Object(Alpha { alpha }) => Self::LengthAdaptive { alpha },
        }
    }
}

/// A fixed coefficient, or the config of either controller.
pub(crate) type GivenKlControl = Either<f64, EitherKl>;

/// The fields of both controllers; only one of them has a horizon.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EitherKl {
    #[serde(default, deserialize_with = "given")]
    beta: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    target: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    learning_rate: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    beta_min: Option<f64>,
    #[serde(default, deserialize_with = "given")]
    follow: Option<Option<Follow>>,
    #[serde(default, deserialize_with = "given")]
    horizon: Option<f64>,
}

impl TryFrom<GivenKlControl> for KlControlConfig {
    type Error = &'static str;
    fn try_from(control: GivenKlControl) -> Result<Self, Self::Error> {
        let EitherKl { beta, target, learning_rate, beta_min, follow, horizon } = match control {
            Either::Plain(beta) => return Ok(Self::Fixed(beta)),
            Either::Object(config) => config,
        };
        let Some(horizon) = horizon else {
            let usual = LinearKlConfig::default();
            return Ok(Self::Linear(LinearKlConfig {
                beta: beta.unwrap_or(usual.beta),
                target: target.unwrap_or(usual.target),
                learning_rate: learning_rate.unwrap_or(usual.learning_rate),
                beta_min: beta_min.unwrap_or(usual.beta_min),
                follow: follow.unwrap_or(usual.follow),
            }));
        };
        if learning_rate.is_some() || beta_min.is_some() || follow.is_some() {
            return Err("a controller with `horizon` has `beta` and `target` beside it only");
        }
        let usual = AdaptiveKlConfig::default();
        let (beta, target) = (beta.unwrap_or(usual.beta), target.unwrap_or(usual.target));
        Ok(Self::Adaptive(AdaptiveKlConfig { beta, target, horizon }))
    }
}

/// A range as an object with the names of its ends, or `null`.
pub(crate) mod range {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Range {
        low: f64,
        high: f64,
    }

    pub(crate) fn serialize<S: Serializer>(range: &Option<(f64, f64)>, serializer: S) -> Result<S::Ok, S::Error> {
        range.map(|(low, high)| Range { low, high }).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(f64, f64)>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(|Range { low, high }| (low, high)))
    }
}

/// The budget of the game. Missing fields come from the default of [`DualGameRules`], which differs from that of a
/// budget alone.
#[derive(Deserialize)]
#[serde(remote = "EntropyBudgetConfig", default = "budget_of_game", deny_unknown_fields)]
pub(crate) struct BudgetOfGame {
    lambda: f64,
    learning_rate: f64,
    lambda_max: Option<f64>,
    #[serde(with = "range")]
    wh_range: Option<(f64, f64)>,
    source: BudgetSource,
    follow: Option<Follow>,
    schedule: BudgetSchedule,
    guard: CollapseGuard,
}

fn budget_of_game() -> EntropyBudgetConfig {
    DualGameRules::default().budget
}
