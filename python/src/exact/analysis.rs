use pyo3::{prelude::*, types::PyDict};
use tokenwise::{exact::Partial as _, metric::AnalysisInput};

use super::{entries, state, update};
use crate::error::OrRaise as _;

state! {
    /// The sums behind the five ``analysis/…`` keys, not rounded.
    ExactAnalysis, {
        /// Adds the kept tokens of a batch.
        #[pyo3(signature = (*, old_log_probs, advantages, rewards, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            old_log_probs: &Bound<'py, PyAny>,
            advantages: &Bound<'py, PyAny>,
            rewards: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            update!(py, [old_log_probs, advantages, rewards], mask, cu_seqlens, |batch| {
                self.0.update(&batch, AnalysisInput { old_log_probs, advantages, rewards })
            })
        }

        /// The five keys of all batches together.
        fn analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            entries(py, self.0.analysis().or_raise(py)?.entries())
        }
    }
}
