//! The runs below a folder: `<task>/<variant>/seed-<n>/` with `run.json`, `metrics.jsonl`, `timing.jsonl`,
//! `distributions.jsonl` and `final.json`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokenwise_recorder::read_lines;

use super::text::Text;

/// What `run.json` says; further keys are ignored.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Description {
    pub(crate) task: String,
    pub(crate) group: String,
    pub(crate) variant: String,
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    #[serde(default)]
    pub(crate) algorithm: String,
    #[serde(default)]
    pub(crate) settings: Value,
    #[serde(default)]
    pub(crate) parameters: Option<u64>,
    #[serde(default)]
    pub(crate) policy_parameters: Option<u64>,
    /// Supervised training before the first step: `steps` and `accuracy`.
    #[serde(default)]
    pub(crate) warmup: Value,
    /// How much the entropy of a token counts.
    #[serde(default)]
    pub(crate) weight: String,
    /// What the controllers of both prices were set to.
    #[serde(default)]
    pub(crate) controllers: Value,
}

/// Time of one step.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Timing {
    pub(crate) seconds: f64,
    #[serde(default)]
    pub(crate) stages: Map<String, Value>,
    /// Part of `seconds` in which the thread of the run had a processor; runs of earlier versions do not say it.
    #[serde(default)]
    pub(crate) computing: Option<f64>,
    /// Part of that in token-level formulas.
    #[serde(default)]
    pub(crate) formulas: f64,
}

impl Timing {
    /// What the share of the formulas is a share of.
    pub(crate) fn computing(&self) -> f64 {
        self.computing.unwrap_or(self.seconds)
    }
}

/// Counts between edges.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Histogram {
    /// One more than counts.
    pub(crate) edges: Vec<f64>,
    pub(crate) counts: Vec<f64>,
}

/// Distributions of one step.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Distributions {
    pub(crate) step: u64,
    #[serde(rename = "H", default)]
    pub(crate) entropy: Histogram,
    #[serde(rename = "cov", default)]
    pub(crate) covariance: Histogram,
}

/// A complete run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) about: Description,
    /// One column per key, a number per step; NaN where a step has no number.
    pub(crate) columns: BTreeMap<String, Vec<f64>>,
    pub(crate) timing: Vec<Timing>,
    pub(crate) distributions: Vec<Distributions>,
}

/// A run that is left out of every number, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LeftOut {
    pub(crate) task: String,
    pub(crate) variant: String,
    pub(crate) seed: String,
    /// Steps that were recorded.
    pub(crate) steps: usize,
    /// Steps that were wanted.
    pub(crate) of: Option<u64>,
    pub(crate) why: Text,
}

/// Everything below a folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    pub(crate) complete: Vec<Run>,
    pub(crate) left_out: Vec<LeftOut>,
}

impl Run {
    /// The numbers of a key, if at least one step has one.
    pub(crate) fn column(&self, key: &str) -> Option<&[f64]> {
        self.columns.get(key).map(Vec::as_slice).filter(|column| column.iter().any(|x| x.is_finite()))
    }

    /// The switches of the variant, as `name=value`.
    pub(crate) fn switches(&self) -> Vec<&str> {
        self.about.variant.split('+').skip(1).collect()
    }
}

/// Reads all runs, in the order of their names.
pub(crate) fn load(folder: &Path) -> Result<Runs> {
    let mut runs = Runs::default();
    for task in folders(folder)? {
        for variant in folders(&task)? {
            for seed in folders(&variant)? {
                let names = [&task, &variant, &seed].map(|path| name(path));
                if !names[2].starts_with("seed-") {
                    continue;
                }
                read(&seed, names, &mut runs).with_context(|| seed.display().to_string())?;
            }
        }
    }
    Ok(runs)
}

fn read(folder: &Path, [task, variant, seed]: [String; 3], runs: &mut Runs) -> Result<()> {
    let seed = seed.trim_start_matches("seed-").to_string();
    let mut leave_out = |steps, of, why| {
        runs.left_out.push(LeftOut {
            task: task.clone(),
            variant: variant.clone(),
            seed: seed.clone(),
            steps,
            of,
            why,
        });
        Ok(())
    };
    let Some(about) = fs::read(folder.join("run.json")).ok() else {
        return leave_out(0, None, Text::new("there is no run.json", "没有 run.json"));
    };
    let about: Description = match serde_json::from_slice(&about) {
        Ok(about) => about,
        Err(error) => {
            return leave_out(0, None, Text::new(format!("run.json: {error}"), format!("run.json 有误：{error}")))
        }
    };
    let metrics = folder.join("metrics.jsonl");
    let lines = if metrics.exists() { read_lines(&metrics)? } else { Vec::new() };
    let of = Some(about.steps);
    // counted from 0 or from 1
    let first = lines.first().and_then(step_of).filter(|step| *step <= 1).unwrap_or(1);
    let wrong = lines.iter().enumerate().find(|(index, line)| step_of(line) != Some(first + *index as u64));
    if let Some((index, line)) = wrong {
        let (wanted, found) = (first + index as u64, line.get("step").unwrap_or(&Value::Null));
        let why = Text::new(
            format!("metrics.jsonl: expected step {wanted}, got {found}"),
            format!("metrics.jsonl：应为第 {wanted} 步，实为 {found}"),
        );
        return leave_out(index, of, why);
    }
    if (lines.len() as u64) < about.steps || !folder.join("final.json").exists() {
        return leave_out(lines.len(), of, Text::new("the run has not ended", "运行尚未结束"));
    }
    let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        for (key, value) in line.iter().filter(|(key, _)| *key != "step") {
            let column = columns.entry(key.clone()).or_insert_with(|| vec![f64::NAN; lines.len()]);
            column[index] = value.as_f64().unwrap_or(f64::NAN);
        }
    }
    runs.complete.push(Run {
        about,
        columns,
        timing: objects(&folder.join("timing.jsonl"))?,
        distributions: objects(&folder.join("distributions.jsonl"))?,
    });
    Ok(())
}

fn step_of(line: &Map<String, Value>) -> Option<u64> {
    line.get("step")?.as_u64()
}

fn objects<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let read = |line| serde_json::from_value(Value::Object(line)).with_context(|| path.display().to_string());
    read_lines(path)?.into_iter().map(read).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn folders(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
    let paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let mut folders: Vec<PathBuf> = paths.into_iter().filter(|path| path.is_dir()).collect();
    // seed-10 after seed-9
    folders.sort_by_key(|path| (name(path).len(), name(path)));
    Ok(folders)
}
