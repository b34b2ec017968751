use pyo3::{prelude::*, types::PyDict};
use tokenwise::{
    exact::Partial as _,
    metric::{ClipConfig, RatioInput},
};

use super::{entries, state, update};
use crate::{error::OrRaise as _, value::config};

state! {
    /// How many tokens the clip holds, on which side, and of how many.
    ExactClip, {
        /// Adds the kept tokens of a batch; the settings are those of ``tokenwise_rl.clip_fractions``.
        #[pyo3(signature = (*, log_probs, old_log_probs, advantages, mask = None, cu_seqlens = None, **settings))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            log_probs: &Bound<'py, PyAny>,
            old_log_probs: &Bound<'py, PyAny>,
            advantages: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<()> {
            let settings: ClipConfig = config(settings)?.read("config").or_raise(py)?;
            update!(py, [log_probs, old_log_probs, advantages], mask, cu_seqlens, |batch| {
                self.0.update(&batch, RatioInput { log_probs, old_log_probs, advantages }, &settings)
            })
        }

        /// ``tokenwise_rl.clip_fractions`` of all batches together, as a dict.
        #[pyo3(signature = (**settings))]
        fn fractions<'py>(
            &self,
            py: Python<'py>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyDict>> {
            let settings: ClipConfig = config(settings)?.read("config").or_raise(py)?;
            let found = self.0.fractions(&settings).or_raise(py)?;
            entries(
                py,
                [("clipped", found.clipped), ("low", found.low), ("high", found.high), ("dual", found.dual)],
            )
        }
    }
}
