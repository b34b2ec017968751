//! The configs of the rollout corrections.

use alloc::vec::Vec;

use tokenwise::{
    rollout::{
        BatchNormalize, Criterion, GateConfig, GateLevel, GateMode, GateStatistic, GroupRule, LogBound,
        OffPolicyConfig, PfPpoRule, RejectionOption, RolloutConfig, RolloutLevel, Unscored, VetoConfig, WeightBound,
    },
    Divisor,
};
use wasm_bindgen::{JsCast, JsValue};

use crate::{
    error::{wrong_type, Result},
    js,
    object::{name_of, object, tagged, Choice, Fields},
};

choices! {
    BatchNormalize { "off" => Off, "by-level" => ByLevel, "tokens" => Tokens }
    GateLevel { "off" => Off, "token" => Token, "sequence" => Sequence }
    GateMode { "clip" => Clip, "mask" => Mask }
    GateStatistic { "ratio" => Ratio, "binary-kl" => BinaryKl, "total-variation" => TotalVariation }
    RejectionOption {
        "token-k1" => TokenK1, "token-k2" => TokenK2, "token-k3" => TokenK3,
        "seq-sum-k1" => SeqSumK1, "seq-sum-k2" => SeqSumK2, "seq-sum-k3" => SeqSumK3,
        "seq-mean-k1" => SeqMeanK1, "seq-mean-k2" => SeqMeanK2, "seq-mean-k3" => SeqMeanK3,
        "seq-max-k2" => SeqMaxK2, "seq-max-k3" => SeqMaxK3
    }
    RolloutLevel { "token" => Token, "sequence" => Sequence, "geometric" => Geometric }
    Unscored { "nan" => Nan, "ignore" => Ignore }
}

plain_config! {
    rollout -> RolloutConfig {
        "level" => level by choice_or,
        "bound" => bound by weight_bound_or,
        "logBound" => log_bound by log_bound_or,
        "normalize" => normalize by choice_or,
        "unscored" => unscored by choice_or,
        "divisor" => divisor by choice_or,
    }
    gate -> GateConfig {
        "level" => level by choice_or,
        "statistic" => statistic by choice_or,
        "mode" => mode by choice_or,
        "lower" => lower by number_or,
        "upper" => upper by number_or,
    }
    veto -> VetoConfig { "lower" => lower by number_or, "upper" => upper by number_or }
    off_policy -> OffPolicyConfig { "threshold" => threshold by number_or, "unscored" => unscored by choice_or }
    criterion -> Criterion {
        "option" => option by choice_or,
        "lower" => lower by number_or,
        "upper" => upper by number_or,
    }
}

/// What a rejection config borrows, and the rest.
pub(crate) fn rejection(value: &JsValue) -> Result<(Vec<Criterion>, Divisor)> {
    let fields = Fields::config("config", value, &["criteria", "divisor"])?;
    let criteria = fields.get("criteria")?;
    let divisor = fields.choice_or("divisor", Divisor::default())?;
    if criteria.is_undefined() {
        return Ok((Vec::new(), divisor));
    }
    let array = criteria.dyn_ref::<js::Array>().ok_or_else(|| wrong_type("criteria", "an array", &criteria))?;
    Ok(((0..array.len()).map(|index| criterion(&array.at(index))).collect::<Result<_>>()?, divisor))
}

pub(crate) fn write_criterion(criterion: &Criterion) -> Result<JsValue> {
    object([
        ("option", name_of(criterion.option).into()),
        ("lower", criterion.lower.into()),
        ("upper", criterion.upper.into()),
    ])
}

pub(crate) fn write_weight_bound(bound: WeightBound) -> Result<JsValue> {
    match bound {
        WeightBound::Unbounded => object([("kind", "unbounded".into())]),
        WeightBound::Truncate { upper } => object([("kind", "truncate".into()), ("upper", upper.into())]),
        WeightBound::Zero { lower, upper } => {
            object([("kind", "zero".into()), ("lower", lower.into()), ("upper", upper.into())])
        }
        WeightBound::Clamp { lower, upper } => {
            object([("kind", "clamp".into()), ("lower", lower.into()), ("upper", upper.into())])
        }
    }
}

pub(crate) fn group_rule(value: &JsValue) -> Result<GroupRule> {
    let kinds: [(&str, &[&str]); 3] =
        [("not-constant", &[]), ("spread", &["atLeast"]), ("mean-between", &["low", "high"])];
    Ok(match tagged("rule", value, &kinds)? {
        None | Some((0, _)) => GroupRule::NotConstant,
        Some((1, [at_least, ..])) => GroupRule::Spread { at_least },
        Some((_, [low, high, ..])) => GroupRule::MeanBetween { low, high },
    })
}

pub(crate) fn pf_ppo_rule(value: &JsValue) -> Result<PfPpoRule> {
    let kinds: [(&str, &[&str]); 3] = [("power", &["power"]), ("max-min", &[]), ("max-random", &[])];
    Ok(match tagged("rule", value, &kinds)? {
        None => PfPpoRule::default(),
        Some((0, [power, ..])) => PfPpoRule::Power { power },
        Some((1, _)) => PfPpoRule::MaxMin,
        Some(_) => PfPpoRule::MaxRandom,
    })
}

impl Fields<'_> {
    fn weight_bound_or(&self, key: &str, default: WeightBound) -> Result<WeightBound> {
        let band = &["lower", "upper"];
        let kinds: [(&str, &[&str]); 4] =
            [("unbounded", &[]), ("truncate", &["upper"]), ("zero", band), ("clamp", band)];
        Ok(match tagged(key, &self.get(key)?, &kinds)? {
            None => default,
            Some((0, _)) => WeightBound::Unbounded,
            Some((1, [upper, ..])) => WeightBound::Truncate { upper },
            Some((2, [lower, upper, ..])) => WeightBound::Zero { lower, upper },
            Some((_, [lower, upper, ..])) => WeightBound::Clamp { lower, upper },
        })
    }

    /// A number, or `null` for none.
    fn log_bound_or(&self, key: &str, default: LogBound) -> Result<LogBound> {
        let default = match default {
            LogBound::Unbounded => None,
            LogBound::At(bound) => Some(bound),
        };
        Ok(self.nullable_or(key, default)?.map_or(LogBound::Unbounded, LogBound::At))
    }
}
