//! The tokens that kl-cov penalises, among those of all ranks.

use numpy::{PyArray1, PyArrayDyn, PyArrayMethods as _};
use pyo3::{intern, prelude::*, types::PyDict};
use tokenwise::{
    exact,
    loss::{KlCovConfig, PolicyLossInput},
};

use super::{selection::Selection, update, ExactCoMoments};
use crate::{
    columns::{in_precision, TokenColumns},
    error::OrRaise as _,
    read::{helpers, Reader, Slice},
    value::config,
};

/// ``tokenwise_rl.kl_cov`` whose tokens are chosen among those of all ranks, from their merged moments of advantages
/// (``x``) and log-probabilities (``y``).
#[pyclass(module = "tokenwise_rl")]
#[derive(Clone)]
pub(crate) struct KlCov(exact::KlCov);

/// The loss, its three metrics, and the gradient.
type Found<'py> = (f64, f64, f64, f64, Bound<'py, PyAny>);

#[pymethods]
impl KlCov {
    #[new]
    fn new(moments: PyRef<'_, ExactCoMoments>) -> Self {
        Self(exact::KlCov::new(&moments.0))
    }

    /// The covariance of each kept token of a rank; 0 in dropped slots.
    #[pyo3(signature = (*, log_probs, old_log_probs, advantages, mask = None, cu_seqlens = None))]
    fn covariances<'py>(
        &self,
        py: Python<'py>,
        log_probs: &Bound<'py, PyAny>,
        old_log_probs: &Bound<'py, PyAny>,
        advantages: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut out = Vec::new();
        update!(py, [log_probs, old_log_probs, advantages], mask, cu_seqlens, |batch| {
            out.resize(batch.tokens(), 0.0);
            self.0.covariances(&batch, PolicyLossInput::new(log_probs, old_log_probs, advantages), &mut out)
        })?;
        Ok(PyArray1::from_vec(py, out))
    }

    /// The rank of the :class:`Selection` that finds the smallest covariance that is chosen.
    #[pyo3(signature = (**settings))]
    fn rank(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<u64> {
        let settings = config(settings)?;
        let settings: KlCovConfig<'_> = settings.read("config").or_raise(py)?;
        self.0.rank(&settings).or_raise(py)
    }

    /// How many covariances at the threshold this rank chooses: ``equal`` of each rank, in order, and its ``index``.
    #[staticmethod]
    fn ties(selection: PyRef<'_, Selection>, equal: Vec<u64>, index: usize) -> u64 {
        exact::KlCov::ties(&selection.0, &equal, index)
    }

    /// The loss of a rank, its metrics and the gradient.
    #[pyo3(signature = (
        *, log_probs, old_log_probs, advantages, threshold, ties, weights = None, mask = None, cu_seqlens = None,
        **settings
    ))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn loss<'py>(
        &self,
        py: Python<'py>,
        log_probs: &Bound<'py, PyAny>,
        old_log_probs: &Bound<'py, PyAny>,
        advantages: &Bound<'py, PyAny>,
        threshold: f64,
        ties: u64,
        weights: Option<&Bound<'py, PyAny>>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
        settings: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Found<'py>> {
        let settings = config(settings)?;
        let settings: KlCovConfig<'_> = settings.read("config").or_raise(py)?;
        let mut reader = Reader::new(py);
        let given = [
            ("log_probs", Some(log_probs)),
            ("old_log_probs", Some(old_log_probs)),
            ("advantages", Some(advantages)),
            ("weights", weights),
        ];
        let columns = TokenColumns::read(&mut reader, given, mask, cu_seqlens)?;
        let at = (threshold, ties);
        let (loss, clip_fraction, clip_fraction_lower, kl, grad) =
            in_precision!(columns, self.penalised::<R>(py, &columns, &settings, at)?);
        let grad = match &reader.like {
            Some(like) => helpers(py)?.getattr(intern!(py, "tensors"))?.call1((like, vec![grad]))?.get_item(0)?,
            None => grad,
        };
        Ok((loss, clip_fraction, clip_fraction_lower, kl, grad))
    }
}

impl KlCov {
    fn penalised<'py, R: Slice>(
        &self,
        py: Python<'py>,
        columns: &TokenColumns<'py>,
        settings: &KlCovConfig<'_>,
        at: (f64, u64),
    ) -> PyResult<Found<'py>> {
        let batch = columns.tokens.batch(py)?;
        let input = PolicyLossInput {
            log_probs: columns.required::<R>("log_probs"),
            old_log_probs: columns.required("old_log_probs"),
            advantages: columns.required("advantages"),
            weights: columns.optional("weights"),
        };
        let mut grad = R::SPARE.take(batch.tokens()).unwrap_or_else(|| vec![R::narrow(0.0); batch.tokens()]);
        let found = py.detach(|| self.0.loss(&batch, input, settings, at, &mut grad)).or_raise(py)?;
        let grad: Bound<'py, PyArrayDyn<R>> = R::array(py, grad)?.reshape(columns.tokens.shape.dims()?)?;
        Ok((found.loss, found.clip_fraction, found.clip_fraction_lower, found.kl, grad.into_any()))
    }
}
