//! Histories to be drawn: loading, labels, smoothing, collapse.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tokenwise_recorder::{read_history, read_lines, ENTROPY_KEY};

use crate::failure::{Failure, Result};

const PREFIX: &str = "entropy_history_";

/// One history.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) file: PathBuf,
    pub(crate) label: String,
    /// Step and entropy.
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) mean: f64,
    pub(crate) max: f64,
    pub(crate) min: f64,
}

impl Run {
    pub(crate) fn new(file: &Path, label: String, points: Vec<(f64, f64)>) -> Self {
        let (mut sum, mut max, mut min) = (0.0, f64::NEG_INFINITY, f64::INFINITY);
        for &(_, entropy) in &points {
            sum += entropy / points.len() as f64;
            max = entropy.max(max);
            min = entropy.min(min);
        }
        Self { file: file.into(), label, points, mean: sum, max, min }
    }

    pub(crate) fn first(&self) -> f64 {
        self.points.first().map_or(f64::NAN, |point| point.1)
    }

    pub(crate) fn last(&self) -> f64 {
        self.points.last().map_or(f64::NAN, |point| point.1)
    }

    /// The step from which the entropy stays below a share of its first value.
    pub(crate) fn collapse(&self, share: f64) -> Option<u64> {
        let bound = self.first() * share;
        let above = self.points.iter().rposition(|point| point.1 >= bound);
        let from = above.map_or(0, |above| above + 1);
        self.points.get(from).map(|point| point.0 as u64)
    }

    /// Centred moving average over `window` points; fewer at both ends.
    pub(crate) fn smoothed(&self, window: usize) -> Vec<(f64, f64)> {
        let mut sums = vec![0.0];
        for (index, point) in self.points.iter().enumerate() {
            sums.push(sums[index] + point.1);
        }
        let half = |index: usize| (window / 2).min(index).min(self.points.len() - 1 - index);
        let mean = |index: usize| {
            let (from, to) = (index - half(index), index + half(index) + 1);
            (sums[to] - sums[from]) / (to - from) as f64
        };
        self.points.iter().enumerate().map(|(index, point)| (point.0, mean(index))).collect()
    }
}

/// Reads a history, or the `policy/entropy` values of a metrics file in JSON Lines.
pub(crate) fn load(file: &Path, label: String) -> Result<Run> {
    let lines = file.extension().is_some_and(|extension| extension == "jsonl" || extension == "ndjson");
    let points = if lines { entropy_of_metrics(file)? } else { entropy_of_history(file)? };
    Ok(Run::new(file, label, points))
}

fn entropy_of_history(file: &Path) -> Result<Vec<(f64, f64)>> {
    Ok(read_history(file)?.iter().map(|record| (record.step as f64, record.entropy)).collect())
}

fn entropy_of_metrics(file: &Path) -> Result<Vec<(f64, f64)>> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, line) in read_lines(file)?.iter().enumerate() {
        let (Some(step), Some(entropy)) = (line.get("step"), line.get(ENTROPY_KEY)) else { continue };
        let (Some(step), Some(entropy)) = (step.as_f64(), entropy.as_f64()) else {
            let what = format!("line {}: {ENTROPY_KEY} is {entropy} at step {step}: expected two numbers", index + 1);
            return Err(Failure::input(file, what));
        };
        if points.last().is_some_and(|last| last.0 >= step) {
            return Err(Failure::input(
                file,
                format!("line {}: step {step} does not come after the previous one", index + 1),
            ));
        }
        points.push((step, entropy));
    }
    if points.is_empty() {
        return Err(Failure::input(file, format!("there is no line with \"step\" and {ENTROPY_KEY:?} in it")));
    }
    Ok(points)
}

/// The experiment in the file name, or the file name itself.
pub(crate) fn label_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem.strip_prefix(PREFIX).or(stem.strip_prefix("metrics_")).unwrap_or(&stem).to_string()
}

/// All histories below a folder, ordered by path, with unique labels.
pub(crate) fn scan(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    walk(folder, &mut found, 0)?;
    found.sort();
    if found.is_empty() {
        return Err(Failure::input(folder, format!("no {PREFIX}*.json below this folder")));
    }
    let labels: Vec<String> = found.iter().map(|file| label_of(file)).collect();
    let unique = |index: usize| {
        if labels.iter().filter(|label| **label == labels[index]).count() == 1 {
            return labels[index].clone();
        }
        // the same experiment twice: add the folder
        let parent =
            found[index].parent().and_then(|parent| parent.strip_prefix(folder).ok()).unwrap_or(Path::new("."));
        format!("{} ({})", labels[index], parent.display())
    };
    Ok(found.iter().enumerate().map(|(index, file)| (file.clone(), unique(index))).collect())
}

/// Deep enough for any storage layout; stops cycles of links.
const DEEPEST: usize = 32;

fn walk(folder: &Path, found: &mut Vec<PathBuf>, depth: usize) -> Result<()> {
    let unreadable = |error| Failure::input(folder, error);
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if depth < DEEPEST {
                // a folder without read permission does not hide the others
                if let Err(failure) = walk(&path, found, depth + 1) {
                    eprintln!("warning: {failure}");
                }
            }
        } else if name.starts_with(PREFIX) && name.ends_with(".json") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(entropies: &[f64]) -> Run {
        let points = entropies.iter().enumerate().map(|(step, entropy)| (step as f64 + 1.0, *entropy)).collect();
        Run::new(Path::new("x"), "x".into(), points)
    }

    #[test]
    fn a_collapse_is_where_entropy_stays_low() {
        let falling = run(&[4.0, 1.0, 3.0, 1.0, 0.5, 0.2]);
        assert_eq!(falling.collapse(0.5), Some(4));
        assert_eq!(falling.collapse(0.01), None);
        assert_eq!(run(&[4.0, 4.0]).collapse(0.5), None);
    }

    #[test]
    fn smoothing_keeps_ends_and_straight_lines() {
        let line = run(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(line.smoothed(3), line.points);
        assert_eq!(run(&[0.0, 3.0, 0.0]).smoothed(3)[1].1, 1.0);
        assert_eq!(run(&[5.0]).smoothed(9)[0].1, 5.0);
        assert_eq!((line.mean, line.max, line.min), (3.0, 5.0, 1.0));
    }

    #[test]
    fn labels_are_the_experiments() {
        assert_eq!(label_of(Path::new("a/entropy_history_qwen3-4b_solver_v1.json")), "qwen3-4b_solver_v1");
        assert_eq!(label_of(Path::new("metrics_x.jsonl")), "x");
        assert_eq!(label_of(Path::new("other.json")), "other");
    }
}
