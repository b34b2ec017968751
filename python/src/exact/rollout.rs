use numpy::PyArrayMethods as _;
use pyo3::{intern, prelude::*, types::PyDict};
use tokenwise::{
    exact::Partial as _,
    rollout::{Criterion, RejectionConfig, RolloutConfig, RolloutInput},
    Divisor,
};

use super::{entries, state, update};
use crate::{
    columns::{in_precision, TokenColumns},
    error::OrRaise as _,
    read::{helpers, Reader, Slice},
    value::{config, value},
};

state! {
    /// The sums and extremes behind the mean of importance weights and their metrics, not rounded.
    ExactRolloutWeights, metrics: RolloutConfig, {
        /// Adds the kept tokens of a batch; the settings are those of ``tokenwise_rl.rollout_weights``.
        #[pyo3(signature = (*, old_log_probs, rollout_log_probs, mask = None, cu_seqlens = None, **settings))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            old_log_probs: &Bound<'py, PyAny>,
            rollout_log_probs: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<()> {
            let settings: RolloutConfig = config(settings)?.read("config").or_raise(py)?;
            update!(py, [old_log_probs, rollout_log_probs], mask, cu_seqlens, |batch| {
                self.0.update(&batch, RolloutInput { old_log_probs, rollout_log_probs }, &settings)
            })
        }

        /// ``tokenwise_rl.rollout_weights`` of a part, divided by the mean of all batches: that mean and the weights.
        #[pyo3(signature = (*, old_log_probs, rollout_log_probs, mask = None, cu_seqlens = None, **settings))]
        fn weights<'py>(
            &self,
            py: Python<'py>,
            old_log_probs: &Bound<'py, PyAny>,
            rollout_log_probs: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<(f64, Bound<'py, PyAny>)> {
            let settings: RolloutConfig = config(settings)?.read("config").or_raise(py)?;
            let mut reader = Reader::new(py);
            let given = [("old_log_probs", Some(old_log_probs)), ("rollout_log_probs", Some(rollout_log_probs))];
            let columns = TokenColumns::read(&mut reader, given, mask, cu_seqlens)?;
            let (factor, weights) = in_precision!(columns, self.weighed::<R>(py, &columns, &settings)?);
            let weights = match &reader.like {
                Some(like) => helpers(py)?.getattr(intern!(py, "tensors"))?.call1((like, vec![weights]))?.get_item(0)?,
                None => weights,
            };
            Ok((factor, weights))
        }
    }
}

impl ExactRolloutWeights {
    fn weighed<'py, R: Slice>(
        &self,
        py: Python<'py>,
        columns: &TokenColumns<'py>,
        settings: &RolloutConfig,
    ) -> PyResult<(f64, Bound<'py, PyAny>)> {
        let batch = columns.tokens.batch(py)?;
        let input = RolloutInput {
            old_log_probs: columns.required::<R>("old_log_probs"),
            rollout_log_probs: columns.required("rollout_log_probs"),
        };
        let mut out = R::SPARE.take(batch.tokens()).unwrap_or_else(|| vec![R::narrow(0.0); batch.tokens()]);
        let factor = py.detach(|| self.0.weights(&batch, input, settings, &mut out)).or_raise(py)?;
        Ok((factor, R::array(py, out)?.reshape(columns.tokens.shape.dims()?)?.into_any()))
    }
}

fn divisor(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Divisor> {
    given.map_or(Ok(Divisor::Count), |given| value("divisor", given)?.read("divisor").or_raise(py))
}

state! {
    /// The sums and extremes behind the metrics of one rejection criterion, not rounded.
    ExactCriterion, {
        /// Adds a batch. ``criterion`` is one of ``tokenwise_rl.rollout_rejection_metrics``.
        #[pyo3(signature = (
            criterion, *, old_log_probs, rollout_log_probs, mask = None, cu_seqlens = None, divisor = None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            criterion: &Bound<'py, PyAny>,
            old_log_probs: &Bound<'py, PyAny>,
            rollout_log_probs: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            divisor: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let criterion: Criterion = value("criterion", criterion)?.read("criterion").or_raise(py)?;
            let divisor = self::divisor(py, divisor)?;
            update!(py, [old_log_probs, rollout_log_probs], mask, cu_seqlens, |batch| {
                self.0.update(&batch, RolloutInput { old_log_probs, rollout_log_probs }, &criterion, divisor)
            })
        }

        /// The keys of the criterion for all batches together, as a dict.
        #[pyo3(signature = (criterion, *, divisor = None))]
        fn metrics<'py>(
            &self,
            py: Python<'py>,
            criterion: &Bound<'py, PyAny>,
            divisor: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Bound<'py, PyDict>> {
            let criterion: Criterion = value("criterion", criterion)?.read("criterion").or_raise(py)?;
            let divisor = self::divisor(py, divisor)?;
            entries(py, self.0.metrics(&criterion, divisor).or_raise(py)?.entries())
        }
    }
}

state! {
    /// How many tokens all rejection criteria together drop, and in how many sequences.
    ExactRejection, {
        /// Adds a batch. ``criteria`` are those of ``tokenwise_rl.rollout_rejection_metrics``.
        #[pyo3(signature = (
            criteria, *, old_log_probs, rollout_log_probs, mask = None, cu_seqlens = None, divisor = None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            criteria: &Bound<'py, PyAny>,
            old_log_probs: &Bound<'py, PyAny>,
            rollout_log_probs: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            divisor: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let criteria: Vec<Criterion> = value("criteria", criteria)?.read("criteria").or_raise(py)?;
            let config = RejectionConfig { criteria: &criteria, divisor: self::divisor(py, divisor)? };
            update!(py, [old_log_probs, rollout_log_probs], mask, cu_seqlens, |batch| {
                self.0.update(&batch, RolloutInput { old_log_probs, rollout_log_probs }, &config)
            })
        }

        /// The shares of all batches together, as a dict.
        #[pyo3(signature = (*, divisor = None))]
        fn totals<'py>(&self, py: Python<'py>, divisor: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyDict>> {
            entries(py, self.0.totals(self::divisor(py, divisor)?).or_raise(py)?.entries())
        }
    }
}
