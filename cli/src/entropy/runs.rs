//! Histories to be drawn: loading, labels, smoothing, collapse.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tokenwise_reader::Budget;

use super::series;
use crate::{
    failure::{Failure, Result},
    input::walk,
};

const PREFIX: &str = "entropy_history_";
const METRICS: &str = "metrics_";

/// One history.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) file: PathBuf,
    pub(crate) label: String,
    /// Step and entropy.
    pub(crate) points: Vec<(f64, f64)>,
    /// Step, lowest and highest, if it is the mean of several seeds.
    pub(crate) band: Vec<(f64, f64, f64)>,
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
        Self { file: file.into(), label, points, band: Vec::new(), mean: sum, max, min }
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

    /// Moving average over `window` points. Near the ends, where the window is not centred, a straight line through
    /// it is taken, so that the curve neither bends nor lags there.
    pub(crate) fn smoothed(&self, window: usize) -> Vec<(f64, f64)> {
        let points = &self.points;
        let (mut sums, mut products) = (vec![0.0], vec![0.0]);
        for (index, point) in points.iter().enumerate() {
            sums.push(sums[index] + point.1);
            products.push(products[index] + index as f64 * point.1);
        }
        let value = |index: usize| {
            let (from, to) = (index.saturating_sub(window / 2), (index + window / 2 + 1).min(points.len()));
            let n = (to - from) as f64;
            let (mean, centre) = ((sums[to] - sums[from]) / n, (from + to - 1) as f64 / 2.0);
            let spread = n * (n * n - 1.0) / 12.0;
            if spread == 0.0 || index as f64 == centre {
                return mean;
            }
            let slope = (products[to] - products[from] - centre * (sums[to] - sums[from])) / spread;
            mean + slope * (index as f64 - centre)
        };
        points.iter().enumerate().map(|(index, point)| (point.0, value(index))).collect()
    }
}

/// Reads the runs of a file: one, or several of a CSV table.
pub(crate) fn load(file: &Path, label: &str, key: Option<&str>, memory: Budget) -> Result<Vec<Run>> {
    let runs = series::read(file, key, memory)?;
    let label = |name: Option<String>| name.unwrap_or_else(|| label.to_string());
    Ok(runs.into_iter().map(|found| Run::new(file, label(found.name), found.points)).collect())
}

/// One run for each experiment: the mean over its seeds, with the range of their values.
pub(crate) fn merge_seeds(runs: Vec<Run>) -> Vec<Run> {
    let mut names: Vec<String> = Vec::new();
    let mut merged: Vec<Run> = Vec::new();
    for run in &runs {
        let name = without_seed(&run.label).to_string();
        if names.contains(&name) {
            continue;
        }
        let seeds: Vec<&Run> = runs.iter().filter(|run| without_seed(&run.label) == name).collect();
        let mut steps: BTreeMap<u64, (f64, f64, f64, f64)> = BTreeMap::new();
        for (step, value) in seeds.iter().flat_map(|run| run.points.iter().copied()) {
            let entry = steps.entry(step as u64).or_insert((0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY));
            *entry = (entry.0 + 1.0, entry.1 + value, entry.2.min(value), entry.3.max(value));
        }
        let points = steps.iter().map(|(step, (count, sum, _, _))| (*step as f64, sum / count)).collect();
        let label = if seeds.len() > 1 { format!("{name} ({} seeds)", seeds.len()) } else { run.label.clone() };
        let mut all = Run::new(&run.file, label, points);
        if seeds.len() > 1 {
            all.band = steps.iter().map(|(step, (_, _, low, high))| (*step as f64, *low, *high)).collect();
        }
        merged.push(all);
        names.push(name);
    }
    merged
}

/// `solver_seed3`, `solver-s3` → `solver`.
fn without_seed(label: &str) -> &str {
    let rest = label.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if rest.len() == label.len() {
        return label;
    }
    let marks = ["_seed_", "-seed-", "_seed", "-seed", ".seed", "seed", "_s", "-s"];
    let name = marks.iter().find_map(|mark| rest.strip_suffix(mark));
    name.filter(|name| !name.is_empty()).unwrap_or(label)
}

/// The experiment in the file name, or the file name itself.
pub(crate) fn label_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    stem.strip_prefix(PREFIX).or(stem.strip_prefix(METRICS)).unwrap_or(&stem).to_string()
}

/// All histories below a folder, ordered by the numbers in their paths, with unique labels. A metrics file beside the history of the same
/// experiment holds the same numbers and is left out.
pub(crate) fn scan(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found: Vec<PathBuf> = Vec::new();
    walk(folder, &mut |path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let history = name.starts_with(PREFIX) && name.ends_with(".json");
        if history || (name.starts_with(METRICS) && name.ends_with(".jsonl")) {
            found.push(path.to_path_buf());
        }
    })?;
    crate::input::sort(&mut found);
    let is_history = |file: &Path| file.extension().is_some_and(|ending| ending == "json");
    let all = found.clone();
    found.retain(|file| {
        let same = |other: &&PathBuf| other.parent() == file.parent() && label_of(other) == label_of(file);
        is_history(file) || !all.iter().filter(same).any(|other| is_history(other))
    });
    if found.is_empty() {
        return Err(Failure::input(folder, format!("no {PREFIX}*.json or {METRICS}*.jsonl below this folder")));
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
    fn smoothing_has_no_kink_at_the_ends() {
        let noisy: Vec<f64> = (0..200).map(|step| f64::from(step) * 0.1 + f64::from(step * 7919 % 13) * 0.3).collect();
        let smooth = run(&noisy).smoothed(31);
        let bends = smooth.windows(3).map(|three| (three[0].1 - 2.0 * three[1].1 + three[2].1).abs());
        assert!(bends.fold(0.0, f64::max) < 0.5, "{smooth:?}");
    }

    #[test]
    fn seeds_become_one_run_with_a_band() {
        let mut runs = vec![run(&[1.0, 2.0]), run(&[3.0, 2.0]), run(&[9.0])];
        for (run, label) in runs.iter_mut().zip(["solver_seed1", "solver_seed2", "v2"]) {
            run.label = label.into();
        }
        let merged = merge_seeds(runs);
        assert_eq!((merged.len(), merged[0].label.as_str(), merged[1].label.as_str()), (2, "solver (2 seeds)", "v2"));
        assert_eq!(merged[0].points, [(1.0, 2.0), (2.0, 2.0)]);
        assert_eq!(merged[0].band, [(1.0, 1.0, 3.0), (2.0, 2.0, 2.0)]);
    }

    #[test]
    fn labels_are_the_experiments() {
        assert_eq!(label_of(Path::new("a/entropy_history_qwen3-4b_solver_v1.json")), "qwen3-4b_solver_v1");
        assert_eq!(label_of(Path::new("metrics_x.jsonl")), "x");
        assert_eq!(label_of(Path::new("other.json")), "other");
    }
}
