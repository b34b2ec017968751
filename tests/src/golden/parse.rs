//! JSON values as numbers.

use serde_json::Value;

/// A tolerance, or its default.
pub(super) fn tolerance(value: &Value, key: &str, default: f64) -> Result<f64, String> {
    match value {
        Value::Null => Ok(default),
        value => value.as_f64().filter(|x| *x >= 0.0).ok_or(format!("{key}: expected a number that is not negative")),
    }
}

/// Group ids are any integers in a file; the library requires dense ones.
pub(super) fn dense_ids(value: &Value, rows: usize) -> Result<Vec<u32>, String> {
    let list = value.as_array().ok_or("groups: expected a list")?;
    if list.len() != rows {
        return Err(format!("groups: expected {rows} entries, got {}", list.len()));
    }
    let mut seen: Vec<&Value> = Vec::new();
    Ok(list
        .iter()
        .map(|id| {
            let known = seen.iter().position(|other| *other == id);
            known.unwrap_or_else(|| {
                seen.push(id);
                seen.len() - 1
            }) as u32
        })
        .collect())
}

/// A JSON number, a string for one that JSON cannot represent, or a boolean as 0 or 1.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "nan" => Some(f64::NAN),
            "inf" | "+inf" | "infinity" => Some(f64::INFINITY),
            "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => value.as_f64(),
    }
}

/// A list of numbers of a known length.
pub(super) fn numbers(key: &str, value: &Value, len: usize) -> Result<Vec<f64>, String> {
    let list = value.as_array().ok_or(format!("{key}: expected a list"))?;
    if list.len() != len {
        return Err(format!("{key}: expected {len} entries, got {}", list.len()));
    }
    list.iter()
        .enumerate()
        .map(|(index, value)| number(value).ok_or(format!("{key}[{index}]: expected a number, got {value}")))
        .collect()
}
