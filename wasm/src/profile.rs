//! The conventions of the frameworks, and what becomes of a batch under two of them.

use alloc::format;

use tokenwise::{
    advantage::WeightedSum,
    loss::AggregateMode,
    profile::{
        self as core, CompareConfig, CompareScratch, CompareSizes, Convention, Difference, Estimator, ProfileInput,
        QuantityShape,
    },
    Moments, Profile,
};
use wasm_bindgen::{prelude::wasm_bindgen, JsCast, JsValue};

use crate::{
    array::{zeros, Real},
    batch::{Owned, OwnedGroups},
    error::{unknown_choice, wrong_type, Result},
    export::export,
    js,
    metric::count,
    object::{object, Choice, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("profile.ts");

export! {
    #[cfg(feature = "full")]
    REST = 22;
    compare(batch, groups, input, profiles, config) => compareProfiles, compareProfilesF64;
    conventions(profile) => conventions;
}

impl Choice for Estimator {
    const NAMES: &'static [&'static str] = &["group-relative", "leave-one-out", "whitened"];
    const VALUES: &'static [Self] = &[Self::GroupRelative, Self::LeaveOneOut, Self::Whitened];
}

fn profile(parameter: &str, value: &JsValue) -> Result<Profile> {
    let names = Profile::ALL.map(Profile::name);
    let name = value.as_string().ok_or_else(|| wrong_type(parameter, &names.join(" | "), value))?;
    Profile::from_name(&name).ok_or_else(|| unknown_choice(parameter, &name, &names))
}

fn read_config(value: &JsValue) -> Result<CompareConfig<'static>> {
    let keys = ["gamma", "lambda", "beta", "clipLow", "clipHigh", "dualClip", "valueClip", "estimator", "mode"];
    let fields = Fields::config("config", value, &keys)?;
    let default = CompareConfig::default();
    let modes = ["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean"];
    let mode = match fields.chosen("mode", &modes)? {
        None | Some(0) => AggregateMode::TokenMean,
        Some(1) => AggregateMode::TokenSum,
        Some(2) => AggregateMode::SequenceMeanTokenSum,
        Some(_) => AggregateMode::SequenceMeanTokenMean,
    };
    Ok(CompareConfig {
        gamma: fields.number_or("gamma", default.gamma)?,
        lambda: fields.nullable_or("lambda", None)?,
        beta: fields.nullable_or("beta", None)?,
        clip_low: fields.number_or("clipLow", default.clip_low)?,
        clip_high: fields.number_or("clipHigh", default.clip_high)?,
        dual_clip: fields.nullable_or("dualClip", None)?,
        value_clip: fields.nullable_or("valueClip", None)?,
        estimator: fields.choice_or("estimator", default.estimator)?,
        mode,
    })
}

fn compare<R: Real>(
    batch: &JsValue,
    groups: &JsValue,
    input: &JsValue,
    profiles: &JsValue,
    config: &JsValue,
) -> Result<JsValue> {
    let (batch, groups) = (Owned::read(batch)?, OwnedGroups::read("groups", groups)?);
    let (batch, groups, config) = (batch.view()?, groups.view()?, read_config(config)?);
    let profiles = match profiles.dyn_ref::<js::Array>() {
        Some(pair) if pair.len() == 2 => [profile("profiles", &pair.at(0))?, profile("profiles", &pair.at(1))?],
        _ => return Err(wrong_type("profiles", "an array of two names", profiles)),
    };
    let fields = Fields::input("input", input)?;
    let (rewards, log_probs) = (fields.array::<R>("rewards")?, fields.array::<R>("logProbs")?);
    let old_log_probs = fields.array::<R>("oldLogProbs")?;
    let optional = |key| fields.optional_array::<R>(key);
    let (scores, values, predictions) = (optional("scores")?, optional("values")?, optional("predictions")?);
    let (ref_log_probs, rollout_log_probs) = (optional("refLogProbs")?, optional("rolloutLogProbs")?);
    let input = ProfileInput {
        rewards: &rewards,
        scores: scores.as_deref(),
        values: values.as_deref(),
        predictions: predictions.as_deref(),
        log_probs: &log_probs,
        old_log_probs: &old_log_probs,
        ref_log_probs: ref_log_probs.as_deref(),
        rollout_log_probs: rollout_log_probs.as_deref(),
    };
    let sizes = CompareSizes::of(&batch, &groups)?;
    let scratch = CompareScratch {
        tokens: &mut zeros(sizes.tokens)?,
        sequences: &mut zeros(sizes.sequences)?,
        moments: &mut zeros::<Moments>(sizes.groups)?,
        sums: &mut zeros::<WeightedSum>(sizes.groups)?,
        keep: &mut zeros(sizes.keep)?,
    };
    let (out, mut failed) = (js::Array::new(), None);
    let sides = profiles.map(Profile::conventions);
    core::compare(&batch, &groups, input, sides, &config, scratch, |difference| match written(difference) {
        Ok(object) => _ = out.push(&object),
        Err(error) => failed = Some(error),
    })?;
    failed.map_or(Ok(out.into()), Err)
}

fn written(difference: &Difference<'_>) -> Result<JsValue> {
    let [first, second] = difference.values;
    let number = |value: ::core::result::Result<f64, tokenwise::Error>| value.map_or(JsValue::NULL, JsValue::from_f64);
    let code = |value: ::core::result::Result<f64, tokenwise::Error>| {
        value.err().map_or(JsValue::NULL, |error| error.code().into())
    };
    let shape = match difference.quantity.shape() {
        QuantityShape::Tokens => "tokens",
        QuantityShape::Sequences => "sequences",
        QuantityShape::Scalar => "scalar",
    };
    let causes = js::Array::new();
    for cause in difference.causes() {
        let [first, second] = cause.values.map(|value| JsValue::from(format!("{value:?}")));
        let values = js::Array::pair(&first, &second);
        causes.push(&object([("convention", cause.convention.name().into()), ("values", values)])?);
    }
    object([
        ("result", difference.quantity.name().into()),
        ("shape", shape.into()),
        ("index", difference.index.map_or(JsValue::NULL, |index| count(index as u64))),
        ("values", js::Array::pair(&number(first), &number(second))),
        ("refused", js::Array::pair(&code(first), &code(second))),
        ("difference", difference.difference.into()),
        ("count", count(difference.count as u64)),
        ("causes", causes.into()),
    ])
}

fn conventions(name: &JsValue) -> Result<JsValue> {
    let (conventions, out) = (profile("profile", name)?.conventions(), js::Object::new());
    for &convention in Convention::ALL {
        let value = format!("{:?}", conventions.of(convention));
        js::set(&out, convention.name(), &value.into())?;
    }
    Ok(out.into())
}
