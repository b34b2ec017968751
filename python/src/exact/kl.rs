use pyo3::{prelude::*, types::PyDict};
use tokenwise::{divergence::KlInput, exact::Partial as _, MeanConfig};

use super::{entries, state, update};
use crate::{error::OrRaise as _, value::config};

state! {
    /// The sums of every KL estimate, not rounded.
    ExactKl, {
        /// Adds the kept tokens of a batch.
        #[pyo3(signature = (*, log_probs, ref_log_probs, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            log_probs: &Bound<'py, PyAny>,
            ref_log_probs: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            update!(py, [log_probs, ref_log_probs], mask, cu_seqlens, |batch| {
                self.0.update(&batch, KlInput { log_probs, ref_log_probs })
            })
        }

        /// ``tokenwise_rl.kl_means`` of all batches together, as a dict.
        #[pyo3(signature = (**settings))]
        fn means<'py>(&self, py: Python<'py>, settings: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
            let settings: MeanConfig = config(settings)?.read("config").or_raise(py)?;
            let found = self.0.means(&settings).or_raise(py)?;
            entries(py, [("k1", found.k1), ("abs", found.abs), ("k2", found.k2), ("k3", found.k3)])
        }
    }
}
