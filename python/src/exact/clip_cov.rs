//! The random choice of clip-cov among the tokens of all ranks.

use numpy::{PyArray1, PyArrayDyn, PyArrayMethods as _};
use pyo3::{prelude::*, types::PyDict};
use tokenwise::{
    exact,
    loss::{ClipCovSelectionConfig, PolicyLossInput},
};

use super::{update, ExactCoMoments};
use crate::{
    columns::{in_precision, TokenColumns},
    error::OrRaise as _,
    read::Reader,
    value::config,
};

/// ``tokenwise_rl.clip_cov_selection`` among the tokens of all ranks, from their merged moments of advantages (``x``)
/// and log-probabilities (``y``). The settings are those of ``tokenwise_rl.clip_cov_selection``.
#[pyclass(module = "tokenwise_rl")]
#[derive(Clone)]
pub(crate) struct ClipCov(exact::ClipCov);

#[pymethods]
impl ClipCov {
    #[new]
    fn new(moments: PyRef<'_, ExactCoMoments>) -> Self {
        Self(exact::ClipCov::new(&moments.0))
    }

    /// How many tokens of a rank may be chosen.
    #[pyo3(signature = (*, log_probs, old_log_probs, advantages, mask = None, cu_seqlens = None, **settings))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn candidates<'py>(
        &self,
        py: Python<'py>,
        log_probs: &Bound<'py, PyAny>,
        old_log_probs: &Bound<'py, PyAny>,
        advantages: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
        settings: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<u64> {
        let settings = config(settings)?;
        let settings: ClipCovSelectionConfig<'_> = settings.read("config").or_raise(py)?;
        update!(py, [log_probs, old_log_probs, advantages], mask, cu_seqlens, |batch| {
            self.0.candidates(&batch, PolicyLossInput::new(log_probs, old_log_probs, advantages), &settings.clip)
        })
    }

    /// The tokens of a rank that are chosen: ``candidates`` of all ranks, in order, and which of them this one is.
    #[pyo3(signature = (
        *, log_probs, old_log_probs, advantages, candidates, index, mask = None, cu_seqlens = None, **settings
    ))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn select<'py>(
        &self,
        py: Python<'py>,
        log_probs: &Bound<'py, PyAny>,
        old_log_probs: &Bound<'py, PyAny>,
        advantages: &Bound<'py, PyAny>,
        candidates: Vec<u64>,
        index: usize,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
        settings: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<bool>>> {
        let settings = config(settings)?;
        let settings: ClipCovSelectionConfig<'_> = settings.read("config").or_raise(py)?;
        let given =
            [("log_probs", Some(log_probs)), ("old_log_probs", Some(old_log_probs)), ("advantages", Some(advantages))];
        let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
        let batch = columns.tokens.batch(py)?;
        let mut selected = vec![false; batch.tokens()];
        in_precision!(columns, {
            let of = |name| columns.required::<R>(name);
            let input = PolicyLossInput::new(of("log_probs"), of("old_log_probs"), of("advantages"));
            py.detach(|| self.0.select(&batch, input, &settings, (&candidates, index), &mut selected)).or_raise(py)?;
        });
        PyArray1::from_vec(py, selected).reshape(columns.tokens.shape.dims()?)
    }
}
