//! What becomes of a batch under two profiles.

use js_sys::Array;
use tokenwise::{
    profile::{self, CompareScratch, Difference, ProfileInput, QuantityShape},
    Profile,
};
use tokenwise_catalogue::Compound;
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use super::read_profile;
use crate::{
    batch::Batch,
    error::{wrong_type, Result},
    read::{field, object, reals, zeros, OwnGroups, Precision},
    value::config,
    write::{or_null, Record},
};

/// Runs one batch under two profiles and tells which results differ, in `f32`.
#[wasm_bindgen(js_name = compareProfiles, skip_typescript)]
pub fn compare_f32(batch: &Batch, groups: &JsValue, input: &JsValue, profiles: &JsValue, config: &JsValue) -> Result {
    compare::<f32>(batch, groups, input, profiles, config)
}

/// The same in `f64`.
#[wasm_bindgen(js_name = compareProfilesF64, skip_typescript)]
pub fn compare_f64(batch: &Batch, groups: &JsValue, input: &JsValue, profiles: &JsValue, config: &JsValue) -> Result {
    compare::<f64>(batch, groups, input, profiles, config)
}

fn compare<R: Precision + Compound>(
    batch: &Batch,
    groups: &JsValue,
    input: &JsValue,
    profiles: &JsValue,
    settings: &JsValue,
) -> Result {
    let (settings, _) = config(settings)?;
    let config = settings.read("config")?;
    let list = Array::is_array(profiles).then(|| Array::from(profiles)).filter(|list| list.length() == 2);
    let Some(list) = list else { return Err(wrong_type("profiles", "an array of two names", profiles)) };
    let sides = [read_profile("profiles", &list.get(0))?, read_profile("profiles", &list.get(1))?];
    object("input", input)?;
    let column = |name| reals::<R>(name, &field(input, name)?);
    let optional = |name| match field(input, name)? {
        missing if missing.is_undefined() => Ok(None),
        found => reals::<R>(name, &found).map(Some),
    };
    let (rewards, log_probs, old_log_probs) = (column("rewards")?, column("log_probs")?, column("old_log_probs")?);
    let [scores, values, predictions] = [optional("scores")?, optional("values")?, optional("predictions")?];
    let [reference, sampler] = [optional("ref_log_probs")?, optional("rollout_log_probs")?];
    let mut input = ProfileInput::new(&rewards, &log_probs, &old_log_probs);
    (input.scores, input.values, input.predictions) = (scores.as_deref(), values.as_deref(), predictions.as_deref());
    (input.ref_log_probs, input.rollout_log_probs) = (reference.as_deref(), sampler.as_deref());
    let (groups, batch) = (OwnGroups::read("groups", groups)?, batch.view()?);
    let groups = groups.view()?;
    let sizes = profile::compare_scratch_len(&batch, &groups)?;
    let scratch = CompareScratch {
        tokens: &mut zeros(sizes.tokens)?,
        sequences: &mut zeros(sizes.sequences)?,
        moments: &mut zeros(sizes.groups)?,
        sums: &mut zeros(sizes.groups)?,
        keep: &mut zeros(sizes.keep)?,
    };
    let (found, mut written) = (Array::new(), Ok(()));
    R::compare(
        &batch,
        &groups,
        input,
        sides.map(Profile::conventions),
        &config,
        scratch,
        &mut |difference| match write(difference) {
            Ok(record) => {
                found.push(&record.into());
            }
            Err(thrown) => written = Err(thrown),
        },
    )?;
    written?;
    Ok(found.into())
}

fn write(difference: &Difference<'_>) -> Result<Record> {
    let pair = |[a, b]: [JsValue; 2]| Array::of2(&a, &b);
    let record = Record::new();
    record.field("result", difference.quantity.name())?;
    let shape = match difference.quantity.shape() {
        QuantityShape::Tokens => "tokens",
        QuantityShape::Sequences => "sequences",
        _ => "scalar",
    };
    record.field("shape", shape)?;
    record.field("index", or_null(difference.index.map(|index| index as f64)))?;
    record.field("values", pair(difference.values.map(|value| or_null(value.ok()))))?;
    record.field("refused", pair(difference.values.map(|value| or_null(value.err().map(|error| error.code())))))?;
    record.field("difference", difference.difference)?;
    record.field("count", difference.count as f64)?;
    let causes = Array::new();
    for cause in difference.causes() {
        let told = Record::new();
        told.field("convention", cause.convention.name())?;
        told.field("values", pair(cause.values.map(|value| format!("{value:?}").into())))?;
        causes.push(&told.into());
    }
    record.field("causes", causes)?;
    Ok(record)
}
