use pyo3::{prelude::*, types::PyDict};
use tokenwise::{exact::Partial as _, metric::ExplainedVarianceConfig, PairInput, Spread};

use super::{entries, state, update};
use crate::{error::OrRaise as _, value::config};

state! {
    /// Count, sums, and sums of squares and products of pairs of numbers, not rounded.
    ExactCoMoments, {
        /// Adds the sums of the sequences: the same bytes for any split by sequences.
        #[pyo3(signature = (x, y, *, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            x: &Bound<'py, PyAny>,
            y: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            update!(py, [x, y], mask, cu_seqlens, |batch| self.0.update(&batch, PairInput { x, y }))
        }

        /// Adds every kept pair by itself, for sequences that are cut: the same bytes for any split.
        #[pyo3(signature = (x, y, *, mask = None, cu_seqlens = None))]
        fn update_by_number<'py>(
            &mut self,
            py: Python<'py>,
            x: &Bound<'py, PyAny>,
            y: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            update!(py, [x, y], mask, cu_seqlens, |batch| self.0.update_by_number(&batch, PairInput { x, y }))
        }

        /// How many pairs were added.
        #[getter]
        fn count(&self) -> u64 {
            self.0.len()
        }

        /// Count, means, sums of squared deviations and of their products, each rounded once.
        fn co_moments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            let found = self.0.co_moments();
            let dict = entries(py, [
                ("mean_x", found.mean_x),
                ("mean_y", found.mean_y),
                ("m2_x", found.m2_x),
                ("m2_y", found.m2_y),
                ("co_moment", found.co_moment),
            ])?;
            dict.set_item("count", found.count)?;
            Ok(dict)
        }

        /// The covariance, divided by ``n − 1`` or (``population=True``) by ``n``.
        #[pyo3(signature = (*, population = false))]
        fn covariance(&self, py: Python<'_>, population: bool) -> PyResult<f64> {
            let spread = if population { Spread::Population } else { Spread::Sample };
            self.0.co_moments().covariance(spread).or_raise(py)
        }

        /// Pearson's correlation.
        fn correlation(&self, py: Python<'_>) -> PyResult<f64> {
            self.0.co_moments().correlation().or_raise(py)
        }

        /// ``tokenwise_rl.explained_variance`` with the returns as ``x`` and the values as ``y``.
        #[pyo3(signature = (**settings))]
        fn explained_variance(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
            let settings: ExplainedVarianceConfig = config(settings)?.read("config").or_raise(py)?;
            self.0.explained_variance(&settings).or_raise(py)
        }
    }
}
