//! Settings and inputs that strangers may spell in more than one way. Two spellings at once are a mistake that is named.

use serde_json::Value;

use crate::golden::case::{Case, Failure};

/// The one spelling the case uses. All are asked for, so that none counts as unknown.
fn only<'n>(names: &[&'n str], has: impl Fn(&str) -> bool) -> Result<Option<&'n str>, Failure> {
    let there: Vec<&str> = names.iter().copied().filter(|name| has(name)).collect();
    match there[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        [one, two, ..] => Err(Failure::Malformed(format!("\"{one}\" and \"{two}\" mean the same"))),
    }
}

/// The spelling of a parameter, if it is there.
pub(super) fn param_of<'n>(case: &Case<'_>, names: &[&'n str]) -> Result<Option<&'n str>, Failure> {
    only(names, |name| case.param(name).is_some())
}

/// The spelling of an input, if it is there.
pub(super) fn input_of<'n>(case: &Case<'_>, names: &[&'n str]) -> Option<&'n str> {
    names.iter().copied().filter(|name| case.has_input(name)).last()
}

pub(super) fn number_of(case: &Case<'_>, names: &[&str], default: Option<f64>) -> Result<f64, Failure> {
    case.number(param_of(case, names)?.unwrap_or(names[0]), default)
}

/// A number, or nothing where it is absent or null.
pub(super) fn optional_of(case: &Case<'_>, names: &[&str]) -> Result<Option<f64>, Failure> {
    match param_of(case, names)? {
        Some(name) if case.param(name) != Some(&Value::Null) => Ok(Some(case.number(name, None)?)),
        _ => Ok(None),
    }
}

pub(super) fn whole_of(case: &Case<'_>, names: &[&str], default: Option<u64>) -> Result<u64, Failure> {
    let x = number_of(case, names, default.map(|default| default as f64))?;
    if x >= 0.0 && (x as u64) as f64 == x {
        Ok(x as u64)
    } else {
        Err(Failure::Malformed(format!("{}: expected a whole number, got {x}", names[0])))
    }
}

/// True or false; absent is false.
pub(super) fn flag_of(case: &Case<'_>, names: &[&str]) -> Result<bool, Failure> {
    case.flag(param_of(case, names)?.unwrap_or(names[0]), false)
}

/// Which of some values, each with its spellings; `_` and `-` are the same, and so are capitals.
pub(super) fn choice_of(case: &Case<'_>, names: &[&str], values: &[&[&str]], default: usize) -> Result<usize, Failure> {
    let Some(name) = param_of(case, names)? else { return Ok(default) };
    let text = case.text(name, "")?;
    let plain = text.to_lowercase().replace('_', "-");
    let known = values.iter().position(|spellings| spellings.contains(&plain.as_str()));
    known.ok_or_else(|| Failure::Malformed(format!("{name}: unknown value \"{text}\"")))
}

/// One number a step: an input of `len` entries, a parameter that stands for all of them, or the default.
pub(super) fn series_of(
    case: &Case<'_>,
    names: &[&str],
    len: usize,
    default: Option<f64>,
) -> Result<Vec<f64>, Failure> {
    match input_of(case, names) {
        Some(key) => case.input(key, len),
        None => Ok(vec![number_of(case, names, default)?; len]),
    }
}
