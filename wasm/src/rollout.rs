//! verl's options as text.

use js_sys::Array;
use tokenwise::rollout::{self, Criterion, WeightBound};
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use crate::{error::Result, read::text, write::Record};

/// The criteria that verl's two options name.
#[wasm_bindgen(js_name = parseRejection, skip_typescript)]
pub fn parse_rejection(options: &JsValue, thresholds: &JsValue) -> Result {
    let (options, thresholds) = (text("options", options)?, text("thresholds", thresholds)?);
    let mut criteria = vec![Criterion::default(); 1 + options.matches(',').count()];
    let count = rollout::parse_rejection(&options, &thresholds, &mut criteria)?;
    let list = Array::new();
    for criterion in criteria.iter().take(count) {
        let record = Record::new();
        record.field("option", criterion.option.name().replace('_', "-"))?;
        record.field("lower", criterion.lower)?;
        record.field("upper", criterion.upper)?;
        list.push(&record.into());
    }
    Ok(list.into())
}

/// The bound that verl's threshold names.
#[wasm_bindgen(js_name = parseWeightBound, skip_typescript)]
pub fn parse_weight_bound(threshold: &JsValue) -> Result {
    let record = Record::new();
    match rollout::parse_weight_bound(&text("threshold", threshold)?)? {
        WeightBound::Truncate { upper } => {
            record.field("kind", "truncate")?;
            record.field("upper", upper)?;
        }
        WeightBound::Zero { lower, upper } => {
            record.field("kind", "zero")?;
            record.field("lower", lower)?;
            record.field("upper", upper)?;
        }
        WeightBound::Clamp { lower, upper } => {
            record.field("kind", "clamp")?;
            record.field("lower", lower)?;
            record.field("upper", upper)?;
        }
        _ => record.field("kind", "unbounded")?,
    }
    Ok(record.into())
}
