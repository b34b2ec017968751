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
        let metrics = JsonLines::open(&folder.join(metrics_name(experiment)), config.survive, config.resume)?;
        let mut history = History::open(&folder.join(history_name(experiment)), config.survive, config.resume)?;
        // a kill between the two writes of a step left it in the first file only
        let last =
            metrics.found().and_then(|line| Some((line.get("step")?.as_u64()?, line.get(ENTROPY_KEY)?.as_f64()?)));
        if let Some((step, entropy)) = last.filter(|(step, _)| Some(*step) > history.last_step()) {
            history.append(step, entropy, &Map::new())?;
        }
        Ok(Self { metrics, history, distributions_every: config.distributions_every })
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
    /// [`Error::Refused`] if the entropy is not finite, the step does not come after the last one, or a key occurs
    /// twice or is `step`; [`Error::Io`]. Then neither file has the step, and it can be recorded again.
    pub fn record_with(&mut self, step: u64, metrics: &[(&str, f64)], extra: &Map<String, Value>) -> Result<()> {
        let mut line = Map::from_iter([("step".to_string(), Value::from(step))]);
        let metrics_of = metrics.iter().map(|(key, value)| (key.to_string(), Value::from(*value)));
        for (key, value) in metrics_of.chain(extra.iter().map(|(key, value)| (key.clone(), value.clone()))) {
            if line.contains_key(&key) {
                let why = format!("step {step}: the key {key:?} is given twice or is the step's own");
                return Err(Error::Refused { path: self.metrics.path().into(), why });
            }
            line.insert(key, value);
        }
        let before = self.metrics.mark();
        self.metrics.append(&line)?;
        let Some((_, entropy)) = metrics.iter().find(|(key, _)| *key == ENTROPY_KEY) else { return Ok(()) };
        self.history.append(step, *entropy, &Map::new()).inspect_err(|_| self.metrics.go_back(before))
    }

    /// Whether distributions are due at this step.
    pub fn wants_distributions(&self, step: u64) -> bool {
        self.distributions_every > 0 && step.is_multiple_of(self.distributions_every)
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
