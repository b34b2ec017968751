//! The k-th number of all ranks.

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use tokenwise::exact::{self, KeyBits};

use super::{array, slice, update};
use crate::error::{wrong, OrRaise as _};

/// The k-th smallest of the numbers of all ranks: each round counts, adds the counts of all ranks, and takes a step.
#[pyclass(module = "tokenwise_rl")]
#[derive(Clone)]
pub(crate) struct Selection(pub(super) exact::Selection);

#[pymethods]
impl Selection {
    /// Asks for the number with ``rank`` numbers before it; ``bits`` is 32 for float32 only, else 64.
    #[new]
    #[pyo3(signature = (rank, *, bits = 64))]
    fn new(py: Python<'_>, rank: u64, bits: u32) -> PyResult<Self> {
        let bits = match bits {
            32 => KeyBits::Single,
            64 => KeyBits::Double,
            other => return Err(wrong(py, "choice", "bits", "32 or 64", &other.to_string())),
        };
        Ok(Self(exact::Selection::new(bits, rank)))
    }

    /// Counts the kept numbers that may still be the one.
    #[pyo3(signature = (values, *, mask = None, cu_seqlens = None))]
    fn count<'py>(
        &mut self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        update!(py, [values], mask, cu_seqlens, |batch| self.0.count(&batch, values))
    }

    /// The counts of this round: a sum over ranks is a merge.
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        array(py, self.0.counts())
    }

    /// Replaces the counts by their sum over all ranks.
    fn set_counts(&mut self, py: Python<'_>, counts: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        self.0.set_counts(slice("counts", &counts, py)?).or_raise(py)
    }

    /// Ends a round: the number, or None if the next round has to be counted.
    fn step(&mut self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.0.step().or_raise(py)
    }

    /// After the last round: how many numbers equal to the one found come before it.
    #[getter]
    fn ties_before(&self) -> u64 {
        self.0.ties_before()
    }
}
