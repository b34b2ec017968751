//! Enums whose variants hold something.

use std::fmt::Debug;

use serde::{de::DeserializeOwned, Serialize};
use serde_json::{json, to_value, Value};
use tokenwise::{advantage::*, control::*, loss::*, metric::*, reward::*, rollout::*, Divisor};

use super::read;

/// The enums below, and the one that [`super::names`] has in a test of its own.
pub(super) const NAMES: &[&str] = &[
    "AggregateMode",
    "BudgetSchedule",
    "BudgetSource",
    "BypassForm",
    "CispoBounds",
    "Convention",
    "Counts",
    "DualClip",
    "GroupRule",
    "KlControlConfig",
    "LogBound",
    "OutsideTopK",
    "PfPpoRule",
    "PolicyLambda",
    "RewardScaleConfig",
    "WeightBound",
];

#[track_caller]
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T, text: Value) {
    assert_eq!(to_value(&value).unwrap(), text);
    assert_eq!(read::<T>(&text).unwrap(), value);
}

#[track_caller]
fn refused<T: DeserializeOwned + Debug>(text: Value, why: &str) {
    let error = read::<T>(&text).unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn a_kind_beside_its_numbers() {
    same(CispoBounds::Relative { low: 0.1, high: 0.2 }, json!({ "kind": "relative", "low": 0.1, "high": 0.2 }));
    same(CispoBounds::Absolute { high: 5.0 }, json!({ "kind": "absolute", "high": 5.0 }));
    same(WeightBound::Unbounded, json!({ "kind": "unbounded" }));
    same(WeightBound::Truncate { upper: 2.0 }, json!({ "kind": "truncate", "upper": 2.0 }));
    same(WeightBound::Clamp { lower: 0.5, upper: 2.0 }, json!({ "kind": "clamp", "lower": 0.5, "upper": 2.0 }));
    let open = WeightBound::Zero { lower: 0.5, upper: f64::INFINITY };
    same(open, json!({ "kind": "zero", "lower": 0.5, "upper": "inf" }));
    same(GroupRule::NotConstant, json!({ "kind": "not-constant" }));
    same(GroupRule::Spread { at_least: 0.1 }, json!({ "kind": "spread", "at_least": 0.1 }));
    let between = GroupRule::MeanBetween { low: f64::NEG_INFINITY, high: 1.0 };
    same(between, json!({ "kind": "mean-between", "low": "-inf", "high": 1.0 }));
    same(PfPpoRule::Power { power: 2.0 }, json!({ "kind": "power", "power": 2.0 }));
    same(PfPpoRule::MaxMin, json!({ "kind": "max-min" }));
    same(PfPpoRule::MaxRandom, json!({ "kind": "max-random" }));
    same(RewardScaleConfig::Clip { low: -1.0, high: 1.0 }, json!({ "kind": "clip", "low": -1.0, "high": 1.0 }));
    let shift = RewardScaleConfig::ShiftScaleClip { bias: 1.0, scale: 2.0, bound: 3.0 };
    same(shift, json!({ "kind": "shift-scale-clip", "bias": 1.0, "scale": 2.0, "bound": 3.0 }));
    let map = json!({ "kind": "map", "from_low": 0.0, "from_high": 1.0, "to_low": 2.0, "to_high": 3.0 });
    same(RewardScaleConfig::Map { from: (0.0, 1.0), to: (2.0, 3.0) }, map);
    same(BudgetSource::Given(0.5), json!({ "kind": "given", "b0": 0.5 }));
    same(BudgetSource::WarmUp { steps: 10, rho: 0.45 }, json!({ "kind": "warm-up", "steps": 10, "rho": 0.45 }));
    same(BudgetSchedule::Constant, json!({ "kind": "constant" }));
    let usage = json!({ "kind": "reward-std-usage", "share": 0.5, "total_steps": 100 });
    same(BudgetSchedule::reward_std_usage(100), usage);
    let exponential = BudgetSchedule::Exponential { alpha: 0.5, total_steps: 7 };
    same(exponential, json!({ "kind": "exponential", "alpha": 0.5, "total_steps": 7 }));
    let plateau = json!({
        "kind": "plateau", "decay": 0.95, "min_delta": 0.1, "patience": 3, "kappa": 0.8, "budget_min": 0.0,
    });
    same(BudgetSchedule::plateau(0.1, 3), plateau);
}

#[test]
fn a_kind_takes_its_own_numbers_only() {
    refused::<WeightBound>(json!({ "upper": 2.0 }), "missing field `kind`");
    refused::<WeightBound>(json!({ "kind": "truncate" }), "missing field `upper`");
    refused::<WeightBound>(json!({ "kind": "truncate", "upper": null }), "invalid type: null");
    refused::<WeightBound>(json!({ "kind": "truncate", "upper": "two" }), "invalid value: string \"two\"");
    refused::<WeightBound>(json!({ "kind": "truncate", "lower": 1.0, "upper": 2.0 }), "`lower` does not belong");
    refused::<WeightBound>(json!({ "kind": "truncate", "upper": 2.0, "most": 2.0 }), "unknown field `most`");
    refused::<WeightBound>(json!({ "kind": "cut", "upper": 2.0 }), "unknown variant `cut`");
    refused::<WeightBound>(json!("unbounded"), "invalid type: string");
    refused::<BudgetSource>(json!({ "kind": "warm-up", "steps": -1, "rho": 0.5 }), "invalid value: integer `-1`");
    refused::<BudgetSource>(json!({ "kind": "warm-up", "steps": 1.5, "rho": 0.5 }), "invalid type: floating point");
}

#[test]
fn a_number_or_none() {
    same(LogBound::At(20.0), json!(20.0));
    same(LogBound::Unbounded, json!(null));
    same(OutsideTopK::LogProb(-9.0), json!(-9.0));
    same(OutsideTopK::Renormalize, json!(null));
    let counts = GlobalCounts { tokens: 7, ..Default::default() };
    same(Counts::Global(counts), json!({ "tokens": 7, "sequences": 0, "prompts": 0, "ranks": 1 }));
    same(Counts::Local, json!(null));
    same(Some(20.0), json!(20.0));
    let config: PpoConfig<'static> = read(&json!({ "log_ratio_bound": null })).unwrap();
    assert_eq!(config, PpoConfig { log_ratio_bound: None, ..Default::default() });
    let veto: VetoConfig = read(&json!({ "upper": 3 })).unwrap();
    assert_eq!(veto, VetoConfig { upper: 3.0, ..Default::default() });
    assert_eq!(to_value(VetoConfig::default()).unwrap()["upper"], json!("inf"));
}

#[test]
fn a_name_or_an_object() {
    same(DualClip::Off, json!("off"));
    same(DualClip::NegativeOnly(3.0), json!({ "negative_only": 3.0 }));
    same(DualClip::BothSigns(3.0), json!({ "both_signs": 3.0 }));
    refused::<DualClip>(json!({ "negative_only": 3.0, "both_signs": 3.0 }), "expected");
    same(PolicyLambda::Fixed(0.5), json!(0.5));
    assert_eq!(read::<PolicyLambda>(&json!(1)).unwrap(), PolicyLambda::Fixed(1.0));
    same(PolicyLambda::LengthAdaptive { alpha: 0.05 }, json!({ "alpha": 0.05 }));
    refused::<PolicyLambda>(json!({ "alpha": 0.05, "beta": 1.0 }), "unknown field `beta`");
    refused::<PolicyLambda>(json!("much"), "expected f64");
    refused::<PolicyLambda>(json!([1.0]), "invalid type: sequence, expected a number, a name or an object");
}

#[test]
fn a_mode_with_what_belongs_to_it() {
    let modes = [
        (AggregateMode::TokenMean, "token-mean"),
        (AggregateMode::TokenSum, "token-sum"),
        (AggregateMode::SequenceMeanTokenSum, "seq-mean-token-sum"),
        (AggregateMode::SequenceMeanTokenMean, "seq-mean-token-mean"),
    ];
    for (mode, name) in modes {
        same(mode, json!(name));
        assert_eq!(read::<AggregateMode<'static>>(&json!({ "mode": name })).unwrap(), mode);
        let whole = json!({ "mode": name, "counts": null, "empty_rows": "excluded", "divisor": "count" });
        same(Aggregate { mode, ..Default::default() }, whole);
    }
    let mode = AggregateMode::SequenceMeanTokenSumNorm { scale: 8.0 };
    same(mode, json!({ "mode": "seq-mean-token-sum-norm", "scale": 8.0 }));
    let whole: Aggregate<'static> = read(&json!({ "mode": "seq-mean-token-sum-norm", "scale": 8 })).unwrap();
    assert_eq!(whole, Aggregate { mode, ..Default::default() });
    let placeholder: AggregateMode<'static> = read(&json!("prompt-mean")).unwrap();
    same(placeholder, json!("prompt-mean"));
    for text in [json!("seq-mean-token-sum-norm"), json!({ "mode": "seq-mean-token-sum-norm" })] {
        refused::<AggregateMode<'static>>(text, "missing field `scale`");
    }
    refused::<Aggregate<'static>>(json!({ "mode": "token-mean", "scale": 8.0 }), "`scale` does not belong");
    refused::<Aggregate<'static>>(json!({ "scale": 8.0 }), "`scale` without its mode");
    refused::<Aggregate<'static>>(json!({ "mode": "sequence-mean" }), "unknown variant `sequence-mean`");
    refused::<Aggregate<'static>>(json!({ "mode": null }), "null");
}

/// What is missing inside is that of the config around it.
#[test]
fn an_inner_config_over_the_outer_default() {
    let plus = Divisor::CountPlusEpsilon;
    let text = json!({ "aggregate": { "divisor": "count-plus-epsilon" } });
    let (gspo, sapo): (GspoConfig<'static>, SapoConfig<'static>) = (read(&text).unwrap(), read(&text).unwrap());
    let expected = Aggregate { mode: AggregateMode::SequenceMeanTokenMean, divisor: plus, ..Default::default() };
    assert_eq!((gspo.aggregate, sapo.aggregate), (expected, expected));
    let verl: VerlConfig<'static> = read(&json!({ "aggregate": { "mode": "token-sum" } })).unwrap();
    assert_eq!(verl.aggregate, Aggregate { mode: AggregateMode::TokenSum, divisor: plus, ..Default::default() });
    let rules: DualGameRules = read(&json!({ "budget": { "lambda": 0.5 } })).unwrap();
    let usual = DualGameRules::default();
    assert_eq!(rules, DualGameRules { budget: EntropyBudgetConfig { lambda: 0.5, ..usual.budget }, ..usual });
}

#[test]
fn the_controllers_of_kl_and_the_budget() {
    same(KlControlConfig::Fixed(0.5), json!(0.5));
    let adaptive = AdaptiveKlConfig { horizon: 5.0, ..Default::default() };
    same(KlControlConfig::Adaptive(adaptive), json!({ "beta": 0.001, "target": 0.1, "horizon": 5.0 }));
    assert_eq!(read::<KlControlConfig>(&json!({ "horizon": 5 })).unwrap(), KlControlConfig::Adaptive(adaptive));
    let linear = LinearKlConfig { follow: Some(Follow { length: 3, ..Default::default() }), ..Default::default() };
    let control: KlControlConfig = read(&json!({ "follow": { "length": 3 } })).unwrap();
    assert_eq!(control, KlControlConfig::Linear(linear));
    assert_eq!(super::copied(&control), control);
    refused::<KlControlConfig>(json!({ "horizon": 5.0, "beta_min": 0.0 }), "a controller with `horizon`");
    let config: EntropyBudgetConfig = read(&json!({ "wh_range": { "low": 0.0, "high": 1.0 } })).unwrap();
    assert_eq!(config, EntropyBudgetConfig { wh_range: Some((0.0, 1.0)), ..Default::default() });
    assert_eq!(super::copied(&config), config);
}

#[test]
fn the_form_of_a_bypass_beside_its_policy() {
    let ppo = PpoConfig { clip_low: 0.1, log_ratio_bound: None, ..Default::default() };
    let text = json!({ "policy": { "clip_low": 0.1, "log_ratio_bound": null } });
    assert_eq!(read::<BypassForm<'static>>(&text).unwrap(), BypassForm::PpoClip(ppo));
    let config: BypassConfig<'static> = read(&text).unwrap();
    assert_eq!(config, BypassConfig { form: BypassForm::PpoClip(ppo), ..Default::default() });
    assert_eq!(super::copied(&config), config);
    let form = BypassForm::Reinforce(ReinforceConfig { divisor: Divisor::CountPlusEpsilon, ..Default::default() });
    let text = json!({ "policy": { "divisor": "count-plus-epsilon" }, "form": "reinforce" });
    assert_eq!(read::<BypassForm<'static>>(&text).unwrap(), form);
    assert_eq!(super::copied(&form), form);
    let wrong = json!({ "form": "reinforce", "policy": { "clip_low": 0.1 } });
    refused::<BypassConfig<'static>>(wrong, "`policy` of `reinforce`");
}
