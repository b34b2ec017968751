//! Compares outputs with the expected ones.

use serde_json::{Map, Value};

use super::case::{number, numbers};

/// One output of an operation.
pub(super) enum Output {
    /// One number.
    Scalar(f64),
    /// One entry per token slot: compared on kept slots.
    Tokens(Vec<f64>),
    /// Entries of any other meaning: all compared.
    Entries(Vec<f64>),
    /// `width` entries per token slot: compared on kept slots.
    Rows { values: Vec<f64>, width: usize },
}

/// The named outputs of an operation.
pub(super) type Outputs = Vec<(String, Output)>;

/// The largest deviation, or the first element of the first output that differs.
pub(super) fn all(
    outputs: &Outputs,
    expect: &Map<String, Value>,
    keep: &[bool],
    rtol: f64,
    atol: f64,
) -> Result<f64, String> {
    let mut largest = 0.0_f64;
    if expect.is_empty() {
        return Err("expect: names no output".into());
    }
    for (key, want) in expect {
        let known = || outputs.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        let (_, got) = outputs
            .iter()
            .find(|(name, _)| name == key)
            .or_else(|| outputs.iter().find(|(name, _)| file_name(name) == plain_name(key)))
            .ok_or_else(|| format!("expect: unknown output \"{key}\" (there are: {})", known()))?;
        let deviation = match got {
            Output::Scalar(got) => {
                let want = number(want).ok_or_else(|| format!("expect {key}: expected a number, got {want}"))?;
                close(key, *got, want, rtol, atol)?
            }
            Output::Entries(got) => lists(key, got, want, rtol, atol, |_| true)?,
            Output::Tokens(got) => lists(key, got, want, rtol, atol, |index| keep[index])?,
            Output::Rows { values, width } => lists(key, values, want, rtol, atol, |index| keep[index / width])?,
        };
        largest = largest.max(deviation);
    }
    Ok(largest)
}

/// The name in a file of an output whose name has the catalogue's dots or a framework's prefix.
fn file_name(name: &str) -> String {
    name.trim_start_matches("rollout_corr/").trim_end_matches(".mean").replace('.', "_")
}

/// The name of an output that a framework logs under another.
fn plain_name(key: &str) -> &str {
    match key.trim_start_matches("actor/").trim_start_matches("critic/") {
        "pg_loss" | "vf_loss" => "loss",
        "clipfrac" | "pg_clipfrac" | "vf_clipfrac" | "clip_ratio/region_mean" => "clip_fraction",
        "pg_clipfrac_lower" => "clip_fraction_lower",
        "ppo_kl" => "kl",
        "vespo/phi_seq_mean" => "phi_mean",
        other => other,
    }
}

fn lists(
    key: &str,
    got: &[f64],
    want: &Value,
    rtol: f64,
    atol: f64,
    counts: impl Fn(usize) -> bool,
) -> Result<f64, String> {
    let mut largest = 0.0_f64;
    let want = numbers(key, want, got.len())?;
    for (index, (&got, want)) in got.iter().zip(want).enumerate() {
        if counts(index) {
            largest = largest.max(close(&format!("{key}[{index}]"), got, want, rtol, atol)?);
        }
    }
    Ok(largest)
}

/// |got − want| ≤ atol + rtol·|want|; NaN agrees with NaN, an infinity with itself. Gives the distance, relative where |want| > 1.
fn close(place: &str, got: f64, want: f64, rtol: f64, atol: f64) -> Result<f64, String> {
    let distance = (got - want).abs();
    if got == want || (got.is_nan() && want.is_nan()) {
        Ok(0.0)
    } else if want.is_finite() && distance <= atol + rtol * want.abs() {
        Ok(distance / want.abs().max(1.0))
    } else {
        Err(format!("{place}: got {got:?}, expected {want:?}, distance {distance:e}"))
    }
}
