//! Printed numbers of worked examples that do not follow from their formulas: each formula is run, must give the exact
//! value, and must not give the printed one.

use serde_json::{json, Value};

use super::{
    case::{number, numbers, Case},
    ops::canonical,
};

pub(super) fn run(value: &Value) -> (String, Result<f64, String>) {
    ("documented_differences".into(), check(value))
}

const KEYS: [&str; 14] = [
    "example",
    "op",
    "profile",
    "rows",
    "cols",
    "mask",
    "groups",
    "inputs",
    "params",
    "output",
    "document_says",
    "exact",
    "why",
    "why_zh",
];

fn check(value: &Value) -> Result<f64, String> {
    let map = value.as_object().ok_or("expected an object")?;
    if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("unknown key \"{key}\""));
    }
    for key in ["why", "why_zh"] {
        value[key].as_str().filter(|text| !text.is_empty()).ok_or(format!("{key}: expected a reason"))?;
    }
    let output = value["output"].as_str().ok_or("output: expected a name")?;
    let case = json!({
        "op": value["op"], "profile": value["profile"], "rows": value["rows"], "cols": value["cols"], "mask": value["mask"],
        "groups": value["groups"], "inputs": value["inputs"], "params": value["params"],
        "expect": { output: value["exact"] }, "rtol": 1e-9,
    });
    let deviation = Case::parse(canonical(&case)?.as_ref())?.check()?;
    let said = value["document_says"].as_array().ok_or("document_says: expected a list")?;
    let exact = numbers("exact", &value["exact"], said.len())?;
    // examples print two or three digits: only a larger difference is an error; null marks a number that is not printed
    let wrong = said.iter().zip(exact).filter_map(|(said, exact)| Some((number(said)? - exact).abs() > 5e-3));
    if wrong.into_iter().any(|wrong| wrong) {
        Ok(deviation)
    } else {
        Err("the printed numbers are right after all".into())
    }
}
