//! The files of a run.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{json, Map, Value};
use tokenwise::{Batch, CoMoments};
use tokenwise_recorder::{history_name, EventFile, History, JsonLines, Resume, Survive};

use crate::{
    checkpoint,
    settings::Settings,
    task::text,
    training::{Step, Trainer},
};

/// Steps between two histograms.
const DISTRIBUTIONS_EVERY: u64 = 200;
/// Steps between two recorded rollouts.
const ROLLOUTS_EVERY: u64 = 10;
/// Responses recorded in such a step.
const ROLLOUTS: usize = 2;
/// The file that marks a finished run.
pub const FINAL: &str = "final.json";

/// The folder of a run below that of an experiment.
pub fn run_folder(out: &Path, settings: &Settings) -> PathBuf {
    out.join(settings.task.name()).join(settings.variant()).join(format!("seed-{}", settings.seed))
}

/// The open files of a run.
#[derive(Debug)]
pub struct Logs {
    folder: PathBuf,
    metrics: JsonLines,
    timing: JsonLines,
    distributions: JsonLines,
    rollouts: JsonLines,
    history: History,
    events: EventFile,
}

impl Logs {
    /// Opens the files to continue at a step: what was written for later ones is removed.
    ///
    /// # Errors
    ///
    /// If a file cannot be opened, or another process writes it.
    pub fn open(folder: &Path, trainer: &Trainer) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)?;
        let settings = &trainer.settings;
        checkpoint::write(&folder.join("run.json"), &serde_json::to_vec_pretty(&description(trainer))?)?;
        let at = Resume::At(trainer.step);
        let lines = |name: &str| JsonLines::open(&folder.join(name), Survive::Kill, at);
        let experiment = format!("{}_seed{}", settings.variant(), settings.seed);
        Ok(Self {
            folder: folder.into(),
            metrics: lines("metrics.jsonl")?,
            timing: lines("timing.jsonl")?,
            distributions: lines("distributions.jsonl")?,
            rollouts: lines("rollouts.jsonl")?,
            history: History::open(&folder.join(history_name(&experiment)), Survive::Kill, at)?,
            events: EventFile::open(folder, &experiment, Survive::Kill, at)?,
        })
    }

    /// Writes a step. Nothing but `timing.jsonl` and the times in the event file depends on more than the settings.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn record(&mut self, settings: &Settings, step: &Step) -> anyhow::Result<()> {
        let last = step.step + 1 == settings.steps;
        let number = |key: &str| step.metrics.iter().find(|(name, _)| *name == key).map(|(_, number)| *number);
        self.history.append(step.step, number("actor/entropy").unwrap_or(f64::NAN), &Map::new())?;
        if step.step.is_multiple_of(DISTRIBUTIONS_EVERY) || last {
            let terms = Terms::of(step)?;
            self.distributions.append(&distributions(step.step, &terms))?;
            let values: [(&str, &[f64]); 2] = [("H", &terms.entropies), ("cov", &terms.covariances)];
            self.events.record_with(step.step, &step.metrics, &values)?;
        } else {
            self.events.record(step.step, &step.metrics)?;
        }
        if step.step.is_multiple_of(ROLLOUTS_EVERY) || last {
            for index in 0..ROLLOUTS {
                self.rollouts.append(&response(step, spread(index, step)))?;
            }
        }
        let stages: Map<String, Value> =
            step.clock.stages.iter().map(|(name, seconds)| ((*name).to_owned(), json!(seconds))).collect();
        let seconds = step.clock.stages.iter().fold(0.0, |sum, (_, seconds)| sum + seconds);
        let timing = json!({
            "step": step.step, "seconds": seconds, "stages": stages,
            "computing": step.clock.computing, "formulas": step.clock.formulas,
        });
        self.timing.append(&object(timing))?;
        let mut line = Map::from_iter([("step".to_owned(), json!(step.step))]);
        line.extend(step.metrics.iter().map(|(key, number)| ((*key).to_owned(), json!(number))));
        Ok(self.metrics.append(&line)?)
    }

    /// Marks the run as finished, with its last numbers.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn finish(&self, trainer: &Trainer, step: &Step) -> anyhow::Result<()> {
        let mut numbers = Map::from_iter([("steps".to_owned(), json!(trainer.step))]);
        numbers.extend(step.metrics.iter().map(|(key, number)| ((*key).to_owned(), json!(number))));
        checkpoint::write(&self.folder.join(FINAL), &serde_json::to_vec_pretty(&numbers)?)
    }
}

/// What a run is.
fn description(trainer: &Trainer) -> Value {
    let settings = &trainer.settings;
    json!({
        "task": settings.task.name(),
        "group": settings.group.name(),
        "variant": settings.variant(),
        "seed": settings.seed,
        "steps": settings.steps,
        "algorithm": settings.algorithm,
        "settings": settings,
        "gamma": settings.gamma(),
        "weight": settings.weight(),
        "controllers": settings.rules(),
        "parameters": trainer.parameter_count(),
        "policy_parameters": trainer.policy.shape().parameter_count(),
        "warmup": trainer.warm_up,
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// Responses from problems far apart.
fn spread(index: usize, step: &Step) -> usize {
    index * step.scores.len() / ROLLOUTS
}

/// One response as docs/rollout-files.md describes it.
fn response(step: &Step, index: usize) -> Map<String, Value> {
    let rollout = &step.rollout;
    let (start, end) = (rollout.starts[index] as usize, rollout.starts[index + 1] as usize);
    let (slots, group) = (start..end, index / rollout.samples);
    let texts = |tokens: &[u32]| tokens.iter().map(|&token| text(token)).collect::<Vec<_>>();
    object(json!({
        "step": step.step,
        "group": group,
        "prompt": texts(&rollout.problems[group].prompt()).concat(),
        "answer": texts(&rollout.problems[group].answer()).concat(),
        "tokens": texts(&rollout.tokens[slots.clone()]),
        "old_log_probs": rollout.log_probs[slots.clone()],
        "ref_log_probs": step.ref_log_probs[slots.clone()],
        "old_entropies": rollout.entropies[slots.clone()],
        "values": step.values[slots.clone()],
        "rewards": step.rewards[slots.clone()],
        "advantages": step.learned.advantages[slots.clone()],
        "returns": step.learned.returns[slots.clone()],
        "mask": vec![1; slots.len()],
        "score": step.scores[index],
    }))
}

/// What is counted in histograms, for each token.
struct Terms {
    entropies: Vec<f64>,
    covariances: Vec<f64>,
}

impl Terms {
    fn of(step: &Step) -> anyhow::Result<Self> {
        let rollout = &step.rollout;
        let batch: Batch<'_> = rollout.batch()?;
        let pairs = tokenwise::PairInput { x: &step.learned.advantages, y: &rollout.log_probs };
        let moments = CoMoments::of(&batch, pairs)?;
        let entropies = rollout.log_probs.iter().map(|&l| -f64::from(l) * tokenwise::math::exp(f64::from(l)));
        let tokens = step.learned.advantages.iter().zip(&rollout.log_probs);
        let covariance = |(&a, &l): (&f32, &f32)| (f64::from(a) - moments.mean_x) * (f64::from(l) - moments.mean_y);
        Ok(Self { entropies: entropies.collect(), covariances: tokens.map(covariance).collect() })
    }
}

/// Histograms of H and of the covariance terms, with the same bins in every run.
fn distributions(step: u64, terms: &Terms) -> Map<String, Value> {
    object(json!({
        "step": step,
        "H": histogram(0.0, 0.37, 37, &terms.entropies),
        "cov": histogram(-4.0, 4.0, 40, &terms.covariances),
    }))
}

/// Counts in bins of equal width; what lies outside counts in the outermost ones.
fn histogram(low: f64, high: f64, bins: usize, values: &[f64]) -> Value {
    let width = (high - low) / bins as f64;
    let edges: Vec<f64> = (0..=bins).map(|bin| low + width * bin as f64).collect();
    let mut counts = vec![0_u64; bins];
    for value in values {
        counts[(((value - low) / width).max(0.0) as usize).min(bins - 1)] += 1;
    }
    json!({ "edges": edges, "counts": counts })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
