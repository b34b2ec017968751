//! Metrics and entropy histories on disk.

use std::path::PathBuf;

use pyo3::{exceptions::PyOSError, prelude::*, types::PyDict};
use tokenwise_recorder as recorder;

/// Appends metrics and the entropy of every step; what was recorded survives a kill at any instant.
#[pyclass(module = "tokenwise_rl")]
pub(crate) struct Recorder(recorder::Recorder);

fn raised(error: &recorder::Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}

#[pymethods]
impl Recorder {
    /// Opens, or goes on with, the files of an experiment in a folder.
    #[new]
    fn new(folder: PathBuf, experiment: &str) -> PyResult<Self> {
        let config = recorder::RecorderConfig::default();
        recorder::Recorder::open(&folder, experiment, &config).map(Self).map_err(|error| raised(&error))
    }

    /// Records the metrics of a step, a dict of numbers under their keys.
    fn record(&mut self, step: u64, metrics: &Bound<'_, PyDict>) -> PyResult<()> {
        let metrics: Vec<(String, f64)> = metrics.extract::<std::collections::BTreeMap<_, _>>()?.into_iter().collect();
        let borrowed: Vec<(&str, f64)> = metrics.iter().map(|(key, number)| (key.as_str(), *number)).collect();
        self.0.record(step, &borrowed).map_err(|error| raised(&error))
    }

    /// The last step that was recorded.
    #[getter]
    fn last_step(&self) -> Option<u64> {
        self.0.last_step()
    }
}

/// The steps and entropies of a recorded history.
#[pyfunction]
pub(crate) fn read_history(path: PathBuf) -> PyResult<Vec<(u64, f64)>> {
    let records = recorder::read_history(&path).map_err(|error| raised(&error))?;
    Ok(records.iter().map(|record| (record.step, record.entropy)).collect())
}
