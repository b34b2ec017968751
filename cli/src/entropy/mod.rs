//! `tokenwise entropy`: plots of entropy histories, and of any other metric of a run.

mod check;
mod events;
mod runs;
mod series;

use std::path::PathBuf;

use serde_json::json;
use tokenwise_reader::Budget;

use crate::{
    args::{Drawing, Entropy},
    failure::{Failure, Result},
    input::check_output,
    output::{cell, count, number, print, table, warn},
    plot::{save, Curve, Figure, Format, Panel},
};
use runs::{label_of, load, merge_seeds, scan, Run};

/// Whether a fault was found.
pub(crate) fn run(command: &Entropy, memory: Budget) -> Result<bool> {
    let (inputs, drawing): (Vec<(PathBuf, String)>, &Drawing) = match command {
        Entropy::Check => return check::run(),
        Entropy::Plot { file, label, drawing } => {
            (vec![(file.clone(), label.clone().unwrap_or_else(|| label_of(file)))], drawing)
        }
        Entropy::Compare { files, labels, drawing } => {
            if !labels.is_empty() && labels.len() != files.len() {
                return Err(Failure::usage(format!(
                    "{} for {}: give one label for each file, in the same order",
                    count(labels.len() as u64, "label"),
                    count(files.len() as u64, "file"),
                )));
            }
            let label = |index: usize| labels.get(index).cloned().unwrap_or_else(|| label_of(&files[index]));
            (files.iter().enumerate().map(|(index, file)| (file.clone(), label(index))).collect(), drawing)
        }
        Entropy::Scan { folder, drawing } => (scan(folder)?, drawing),
    };
    check(drawing)?;
    check_output(&drawing.output, &inputs.iter().map(|(file, _)| file.clone()).collect::<Vec<_>>())?;
    let goes_on = matches!(command, Entropy::Scan { .. });
    let mut runs = Vec::new();
    for (file, label) in &inputs {
        match load(file, label, drawing.key.as_deref(), memory) {
            Ok(found) => runs.extend(found),
            // one broken file does not hide the others
            Err(failure) if goes_on => warn(&failure.to_string()),
            Err(failure) => return Err(failure),
        }
    }
    if runs.is_empty() {
        return Err(Failure::usage("no file has a history that can be drawn"));
    }
    if drawing.seeds {
        runs = merge_seeds(runs);
    }
    save(&figure(&runs, drawing), &drawing.output, drawing.scale, memory)?;
    print(&report(&runs, drawing)).map(|()| false)
}

fn check(drawing: &Drawing) -> Result<()> {
    if let Some(share) = drawing.collapse.filter(|share| !(*share > 0.0 && *share < 1.0)) {
        return Err(Failure::usage(format!("--collapse: expected a share between 0 and 1, got {share}")));
    }
    if !(drawing.scale.is_finite() && drawing.scale >= 0.5 && drawing.scale <= 16.0) {
        return Err(Failure::usage(format!("--scale: expected a number from 0.5 to 16, got {}", drawing.scale)));
    }
    Format::of(&drawing.output).map(|_| ())
}

fn figure(runs: &[Run], drawing: &Drawing) -> Figure {
    let curve = |run: &Run| {
        let at = drawing.collapse.and_then(|share| run.collapse(share)).map(|step| step as f64);
        let mark = at.and_then(|step| run.points.iter().find(|point| point.0 == step).copied());
        let label = match (mark, drawing.collapse) {
            (Some((step, _)), Some(share)) => {
                format!("{} (below {} % from step {step})", run.label, number(share * 100.0))
            }
            _ => run.label.clone(),
        };
        let smooth = drawing.smooth > 1;
        let points = if smooth { run.smoothed(drawing.smooth as usize) } else { run.points.clone() };
        let behind = if smooth { run.points.clone() } else { Vec::new() };
        Curve { label, points, behind, band: run.band.clone(), mark }
    };
    let (title, y_label) = match drawing.key.as_deref() {
        None => ("Policy entropy".to_string(), "policy entropy (nats)".to_string()),
        Some(key) => (key.to_string(), key.to_string()),
    };
    let title = drawing.title.clone().unwrap_or(title);
    let bars: Vec<(&str, Vec<f64>)> = match drawing.with_stats {
        false => Vec::new(),
        true => vec![
            ("mean", runs.iter().map(|run| run.mean).collect()),
            ("max", runs.iter().map(|run| run.max).collect()),
            ("min", runs.iter().map(|run| run.min).collect()),
        ],
    };
    let panel = Panel { title, y_label, curves: runs.iter().map(curve).collect() };
    Figure { panels: vec![panel], bars, width: f64::from(drawing.width), shape: 0.6 }
}

fn report(runs: &[Run], drawing: &Drawing) -> String {
    let collapse = |run: &Run| drawing.collapse.and_then(|share| run.collapse(share));
    if drawing.json {
        let runs: Vec<_> = runs
            .iter()
            .map(|run| {
                json!({
                    "label": run.label, "file": run.file, "steps": run.points.len(), "mean": run.mean, "max": run.max,
                    "min": run.min, "first": run.first(), "last": run.last(), "collapse_step": collapse(run),
                })
            })
            .collect();
        return format!("{}\n", json!({ "output": drawing.output, "runs": runs }));
    }
    let mut rows = vec![["run", "steps", "mean", "max", "min", "first", "last"].map(String::from).to_vec()];
    if drawing.collapse.is_some() {
        rows[0].push("collapse at".into());
    }
    for run in runs {
        let numbers = [run.mean, run.max, run.min, run.first(), run.last()].map(number);
        let mut row = vec![cell(&run.label, 300), run.points.len().to_string()];
        row.extend(numbers);
        if drawing.collapse.is_some() {
            row.push(collapse(run).map_or("never".into(), |step| format!("step {step}")));
        }
        rows.push(row);
    }
    format!("{}{}\n", table(&rows), drawing.output.display())
}
