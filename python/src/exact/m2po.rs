//! The mask of M2PO over all ranks.

use numpy::{PyArray1, PyArrayDyn, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::prelude::*;
use tokenwise::{
    exact,
    rollout::{M2poConfig, RolloutInput},
};

use super::{array, slice, update};
use crate::{
    columns::{in_precision, TokenColumns},
    error::OrRaise as _,
    read::Reader,
};

/// ``tokenwise_rl.m2po_mask`` over all ranks: each round adds up, merges the limbs of all ranks, and takes a step.
#[pyclass(module = "tokenwise_rl")]
#[derive(Clone)]
pub(crate) struct M2po(exact::M2po);

#[pymethods]
impl M2po {
    /// ``tau`` is the bound of ``tokenwise_rl.m2po_mask``.
    #[new]
    #[pyo3(signature = (*, tau))]
    fn new(py: Python<'_>, tau: f64) -> PyResult<Self> {
        exact::M2po::new(&M2poConfig { tau }).map(Self).or_raise(py)
    }

    /// Adds the kept tokens at which the mean may still reach ``tau``.
    #[pyo3(signature = (*, old_log_probs, rollout_log_probs, mask = None, cu_seqlens = None))]
    fn count<'py>(
        &mut self,
        py: Python<'py>,
        old_log_probs: &Bound<'py, PyAny>,
        rollout_log_probs: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        update!(py, [old_log_probs, rollout_log_probs], mask, cu_seqlens, |batch| {
            self.0.count(&batch, RolloutInput { old_log_probs, rollout_log_probs })
        })
    }

    /// What ranks exchange in this round: a sum over them is a merge.
    fn limbs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        array(py, self.0.limbs())
    }

    /// Replaces the limbs by their sum over all ranks.
    fn set_limbs(&mut self, py: Python<'_>, limbs: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        self.0.set_limbs(slice("limbs", &limbs, py)?).or_raise(py)
    }

    /// Ends a round: whether it was the last one.
    fn step(&mut self) -> bool {
        self.0.step()
    }

    /// After the last round: how many kept tokens of a rank are at the cut.
    #[pyo3(signature = (*, old_log_probs, rollout_log_probs, mask = None, cu_seqlens = None))]
    fn equal<'py>(
        &self,
        py: Python<'py>,
        old_log_probs: &Bound<'py, PyAny>,
        rollout_log_probs: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<u64> {
        update!(py, [old_log_probs, rollout_log_probs], mask, cu_seqlens, |batch| {
            self.0.equal(&batch, RolloutInput { old_log_probs, rollout_log_probs })
        })
    }

    /// The mask of a rank: ``equal`` of all ranks, in order, and which of them this one is.
    #[pyo3(signature = (*, old_log_probs, rollout_log_probs, equal, index, mask = None, cu_seqlens = None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn mask<'py>(
        &self,
        py: Python<'py>,
        old_log_probs: &Bound<'py, PyAny>,
        rollout_log_probs: &Bound<'py, PyAny>,
        equal: Vec<u64>,
        index: usize,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<bool>>> {
        let given = [("old_log_probs", Some(old_log_probs)), ("rollout_log_probs", Some(rollout_log_probs))];
        let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
        let batch = columns.tokens.batch(py)?;
        let surplus = self.0.surplus(&equal, index);
        let mut keep = vec![false; batch.tokens()];
        in_precision!(columns, {
            let (old_log_probs, rollout_log_probs) =
                (columns.required::<R>("old_log_probs"), columns.required("rollout_log_probs"));
            let input = RolloutInput { old_log_probs, rollout_log_probs };
            py.detach(|| self.0.mask(&batch, input, surplus, &mut keep)).or_raise(py)?;
        });
        PyArray1::from_vec(py, keep).reshape(columns.tokens.shape.dims()?)
    }
}
