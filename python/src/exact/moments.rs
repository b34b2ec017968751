use numpy::PyArrayMethods as _;
use pyo3::{intern, prelude::*, types::PyDict};
use tokenwise::{advantage::WhitenConfig, exact::Partial as _, metric::VarianceConfig, MeanConfig};

use super::{state, update};
use crate::{
    columns::{in_precision, TokenColumns},
    error::OrRaise as _,
    read::{helpers, Reader, Slice},
    value::config,
};

state! {
    /// Count, sum and sum of squares of some numbers, not rounded.
    ExactMoments, {
        /// Adds the sums of the sequences: the same bytes for any split by sequences.
        #[pyo3(signature = (values, *, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            values: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            update!(py, [values], mask, cu_seqlens, |batch| self.0.update(&batch, values))
        }

        /// Adds every kept entry by itself, for sequences that are cut: the same bytes for any split.
        #[pyo3(signature = (values, *, mask = None, cu_seqlens = None))]
        fn update_by_number<'py>(
            &mut self,
            py: Python<'py>,
            values: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            update!(py, [values], mask, cu_seqlens, |batch| self.0.update_by_number(&batch, values))
        }

        /// How many numbers were added.
        #[getter]
        fn count(&self) -> u64 {
            self.0.len()
        }

        /// The mean, rounded once.
        #[pyo3(signature = (**settings))]
        fn mean(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
            let settings: MeanConfig = config(settings)?.read("config").or_raise(py)?;
            self.0.moments().mean_by(settings.divisor).or_raise(py)
        }

        /// The variance, as ``tokenwise_rl.variance`` gives it.
        #[pyo3(signature = (**settings))]
        fn variance(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
            let settings: VarianceConfig = config(settings)?.read("config").or_raise(py)?;
            self.0.moments().variance(settings.spread, settings.divisor).or_raise(py)
        }

        /// ``(Σ x)² / Σ x²``, for numbers that are weights.
        fn effective_sample_size(&self, py: Python<'_>) -> PyResult<f64> {
            self.0.effective_sample_size().or_raise(py)
        }

        /// ``tokenwise_rl.whiten`` by the mean and spread of this state.
        #[pyo3(signature = (values, *, mask = None, cu_seqlens = None, **settings))]
        fn whiten<'py>(
            &self,
            py: Python<'py>,
            values: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let mut reader = Reader::new(py);
            let columns = TokenColumns::read(&mut reader, [("values", Some(values))], mask, cu_seqlens)?;
            let settings: WhitenConfig = config(settings)?.read("config").or_raise(py)?;
            let whitened = in_precision!(columns, self.whitened::<R>(py, &columns, &settings)?);
            match &reader.like {
                Some(like) => helpers(py)?.getattr(intern!(py, "tensors"))?.call1((like, vec![whitened]))?.get_item(0),
                None => Ok(whitened),
            }
        }
    }
}

impl ExactMoments {
    fn whitened<'py, R: Slice>(
        &self,
        py: Python<'py>,
        columns: &TokenColumns<'py>,
        settings: &WhitenConfig,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (batch, values) = (columns.tokens.batch(py)?, columns.required::<R>("values"));
        let mut out = R::SPARE.take(values.len()).unwrap_or_else(|| vec![R::narrow(0.0); values.len()]);
        py.detach(|| self.0.whiten(&batch, values, settings, &mut out)).or_raise(py)?;
        Ok(R::array(py, out)?.reshape(columns.tokens.shape.dims()?)?.into_any())
    }
}
