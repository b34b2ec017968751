//! `tokenwise entropy`: plots of entropy histories.

mod check;
mod draw;
mod paint;
mod runs;

use serde_json::json;

use crate::{
    args::{Drawing, Entropy},
    failure::{Failure, Result},
    output::{count, number, print, table, write_whole},
};
use runs::{label_of, load, scan, Run};

/// Whether a fault was found.
pub(crate) fn run(command: &Entropy) -> Result<bool> {
    match command {
        Entropy::Check => check::run(),
        Entropy::Plot { file, label, drawing } => {
            let label = label.clone().unwrap_or_else(|| label_of(file));
            draw(vec![load(file, label)?], drawing).map(|()| false)
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
            let runs = files.iter().enumerate().map(|(index, file)| load(file, label(index)));
            draw(runs.collect::<Result<_>>()?, drawing).map(|()| false)
        }
        Entropy::Scan { folder, drawing } => {
            let runs = scan(folder)?.into_iter().map(|(file, label)| load(&file, label));
            draw(runs.collect::<Result<_>>()?, drawing).map(|()| false)
        }
    }
}

fn draw(runs: Vec<Run>, drawing: &Drawing) -> Result<()> {
    if let Some(share) = drawing.collapse.filter(|share| !(*share > 0.0 && *share < 1.0)) {
        return Err(Failure::usage(format!("--collapse: expected a share between 0 and 1, got {share}")));
    }
    if !(drawing.scale.is_finite() && drawing.scale >= 0.5 && drawing.scale <= 16.0) {
        return Err(Failure::usage(format!("--scale: expected a number from 0.5 to 16, got {}", drawing.scale)));
    }
    let kind = drawing.output.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let svg = match kind.as_deref() {
        Some("svg") => true,
        Some("png") => false,
        _ => {
            let what = "the output must end in .png or .svg";
            return Err(Failure::usage(format!("{}: {what}", drawing.output.display())));
        }
    };
    let drawn = draw::svg(&runs, drawing);
    let bytes = if svg { drawn.into_bytes() } else { paint::png(&drawn, drawing.scale)? };
    write_whole(&drawing.output, &bytes)?;
    print(&report(&runs, drawing))
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
        let mut row = vec![run.label.clone(), run.points.len().to_string()];
        row.extend(numbers);
        if drawing.collapse.is_some() {
            row.push(collapse(run).map_or("never".into(), |step| format!("step {step}")));
        }
        rows.push(row);
    }
    format!("{}{}\n", table(&rows), drawing.output.display())
}
