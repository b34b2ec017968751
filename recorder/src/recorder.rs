//! Both files of a run behind one interface.

use std::path::Path;

use serde_json::{Map, Value};

use crate::{
    distribution::Distribution,
    error::{Error, Result},
    history::History,
    lines::JsonLines,
    Resume, Survive,
};

/// The metric that also goes into the entropy history.
pub const ENTROPY_KEY: &str = "policy/entropy";

/// How a run is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct RecorderConfig {
    /// What accepted records survive; default a power loss.
    pub survive: Survive,
    /// Where to continue; default after the last record.
    pub resume: Resume,
    /// Distributions are recorded every this many steps; default 200, 0 for never.
    pub distributions_every: u64,
}

impl Default for RecorderConfig {
    fn default() -> Self {
        Self { survive: Survive::default(), resume: Resume::default(), distributions_every: 200 }
    }
}

/// The name of the entropy history of an experiment.
pub fn history_name(experiment: &str) -> String {
    format!("entropy_history_{experiment}.json")
}

/// The name of the metrics file of an experiment.
pub fn metrics_name(experiment: &str) -> String {
    format!("metrics_{experiment}.jsonl")
}

/// Writes the metrics of a run, step by step.
#[derive(Debug)]
pub struct Recorder {
    metrics: JsonLines,
    history: History,
    distributions_every: u64,
}

impl Recorder {
    /// Opens or creates the files of an experiment in an existing folder.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the experiment's name is not a valid file name; otherwise those of [`History::open`] and
    /// [`JsonLines::open`].
    pub fn open(folder: &Path, experiment: &str, config: &RecorderConfig) -> Result<Self> {
        if experiment.is_empty() || experiment.contains(['/', '\\', '\0']) {
            let why = format!("the experiment's name must be a valid file name, got {experiment:?}");
            return Err(Error::Refused { path: folder.into(), why });
        }
        Ok(Self {
            metrics: JsonLines::open(&folder.join(metrics_name(experiment)), config.survive, config.resume)?,
            history: History::open(&folder.join(history_name(experiment)), config.survive, config.resume)?,
            distributions_every: config.distributions_every,
        })
    }

    /// The last step in either file; a resumed run continues after it.
    pub fn last_step(&self) -> Option<u64> {
        self.metrics.last_step().max(self.history.last_step())
    }

    /// Appends a line `{"step": …, key: value, …}` and, if [`ENTROPY_KEY`] is among the keys, a record to the entropy
    /// history.
    ///
    /// # Errors
    ///
    /// Those of [`Self::record_with`].
    pub fn record(&mut self, step: u64, metrics: &[(&str, f64)]) -> Result<()> {
        self.record_with(step, metrics, &Map::new())
    }

    /// Like [`Self::record`], with further keys of any type. Numbers that are not finite become `null`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the entropy is not finite or the step does not come after the last one; [`Error::Io`].
    pub fn record_with(&mut self, step: u64, metrics: &[(&str, f64)], extra: &Map<String, Value>) -> Result<()> {
        if let Some((_, entropy)) = metrics.iter().find(|(key, _)| *key == ENTROPY_KEY) {
            self.history.append(step, *entropy, &Map::new())?;
        }
        let mut line = Map::from_iter([("step".to_string(), Value::from(step))]);
        line.extend(metrics.iter().map(|(key, value)| (key.to_string(), Value::from(*value))));
        line.extend(extra.iter().map(|(key, value)| (key.clone(), value.clone())));
        self.metrics.append(&line)
    }

    /// Whether distributions are due at this step.
    pub fn wants_distributions(&self, step: u64) -> bool {
        self.distributions_every > 0 && step % self.distributions_every == 0
    }

    /// Appends a line `{"step": …, "distributions": {key: {…}, …}}` if distributions are due at this step; see
    /// [`Distribution`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn distributions(&mut self, step: u64, values: &[(&str, &[f64])]) -> Result<()> {
        if !self.wants_distributions(step) {
            return Ok(());
        }
        let of = |values: &[f64]| Distribution::of(values).map_or(Value::Null, |found| found.to_json());
        let all: Map<String, Value> = values.iter().map(|(key, values)| (key.to_string(), of(values))).collect();
        let line = [("step".to_string(), Value::from(step)), ("distributions".to_string(), Value::from(all))];
        self.metrics.append(&Map::from_iter(line))
    }
}
