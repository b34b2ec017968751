//! Numbers a document states that do not follow from its own formula: each is run, must give the exact value, and must
//! not give the document's.

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
    // documents round to two or three digits: only a difference beyond that is a slip; null is what the document left out
    let slips = said.iter().zip(exact).filter_map(|(said, exact)| Some((number(said)? - exact).abs() > 5e-3));
    if slips.into_iter().any(|slip| slip) {
        Ok(deviation)
    } else {
        Err("the document's numbers are right after all".into())
    }
}
