//! The report of an experiment: curves, tables and tests over the runs of a folder.
//!
//! Every number and every sentence is made from the recorded runs. A run that has not ended is listed, and left out of
//! every number.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

mod analysis;
mod claims;
mod compare;
mod curves;
mod explain;
mod figures;
mod findings;
mod judge;
mod load;
mod page;
mod plot;
mod series;
mod small;
mod statistics;
#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;
mod text;

use analysis::Report;

/// Reads every run below `runs` and writes `report.html`, `report.json` and the figures (`figures/*.svg`) into the
/// folder `out`.
///
/// # Errors
///
/// If a run cannot be read or the report cannot be written.
pub fn write(runs: &Path, out: &Path) -> Result<()> {
    let report = Report::of(load::load(runs)?);
    let pictures = out.join("figures");
    fs::create_dir_all(&pictures).with_context(|| pictures.display().to_string())?;
    for figure in report.tasks.iter().flat_map(|task| figures::figures(task, 1)) {
        if let Some(svg) = figure.svg(plot::Place::File) {
            save(&pictures.join(format!("{}.svg", figure.name)), &svg)?;
        }
    }
    save(&out.join("report.json"), &(serde_json::to_string(&json(&report)?)? + "\n"))?;
    save(&out.join("report.html"), &page::page(&report))
}

/// Writes the small form into the folder `out`: `README.md` with the findings, `numbers.json`, and figures of at most
/// 300 KB together.
///
/// # Errors
///
/// If a run cannot be read or the report cannot be written.
pub fn write_small(runs: &Path, out: &Path) -> Result<()> {
    small::write(&Report::of(load::load(runs)?), out)
}

fn save(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// The report as JSON, numbers with six significant digits.
fn json(report: &Report) -> Result<Value> {
    let mut value = serde_json::to_value(report)?;
    shorten(&mut value);
    Ok(value)
}

fn shorten(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(map) => map.values_mut().for_each(shorten),
        Value::Number(number) if number.is_f64() => {
            let short = number.as_f64().and_then(|x| format!("{x:.5e}").parse::<f64>().ok());
            *value = short.map_or(Value::Null, Value::from);
        }
        _ => {}
    }
}
