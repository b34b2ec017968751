use pyo3::{prelude::*, types::PyDict};
use tokenwise::{
    exact::Partial as _,
    metric::{openrlhf_scratch_len, Lengths, OpenRlhfConfig, OpenRlhfInput},
    Moments,
};

use super::{entries, lengths, read_some, reals_of, some, state};
use crate::{
    columns::in_precision,
    domain::{group_ids, groups as groups_of},
    error::OrRaise as _,
    read::Reader,
    value::config,
};

/// What may be given per token.
const COLUMNS: [&str; 5] = ["log_probs", "ref_log_probs", "entropies", "rewards", "predictions"];

state! {
    /// The sums behind the keys that OpenRLHF logs for a batch, not rounded.
    ExactOpenRlhf, {
        /// Adds a batch: the arrays of ``tokenwise_rl.openrlhf_metrics``, by name, without what losses and gate
        /// returned. ``total_lengths`` are ``{"tokens": …, "limit": …}``; all sequences of a prompt are in one batch.
        #[pyo3(signature = (
            *, mask = None, cu_seqlens = None, scores = None, groups = None, total_lengths = None, truncated = None,
            config = None, **columns
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            scores: Option<&Bound<'py, PyAny>>,
            groups: Option<&Bound<'py, PyAny>>,
            total_lengths: Option<&Bound<'py, PyAny>>,
            truncated: Option<&Bound<'py, PyAny>>,
            config: Option<&Bound<'py, PyDict>>,
            columns: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<()> {
            let settings = self::config(config)?;
            let settings: OpenRlhfConfig<'_> = settings.read("config").or_raise(py)?;
            let mut reader = Reader::new(py);
            let columns = read_some(&mut reader, COLUMNS, columns, mask, cu_seqlens)?;
            let total = lengths(&mut reader, "total_lengths", total_lengths)?;
            let truncated = some(truncated).map(|given| reader.flags("truncated", given)).transpose()?;
            let ids = some(groups).map(group_ids).transpose()?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let optional = |name| columns.optional::<R>(name);
                let scores = some(scores)
                    .map(|given| reals_of::<R>(&mut reader, "scores", given, columns.precision))
                    .transpose()?;
                let mut input = OpenRlhfInput::<R> {
                    log_probs: optional("log_probs"),
                    ref_log_probs: optional("ref_log_probs"),
                    entropies: optional("entropies"),
                    rewards: optional("rewards"),
                    predictions: optional("predictions"),
                    ..Default::default()
                };
                input.scores = scores.as_ref().map(|given| given.as_slice()).transpose()?;
                input.truncated = truncated.as_ref().map(|given| given.as_slice()).transpose()?;
                if let Some(ids) = &ids {
                    input.groups = Some(groups_of(py, ids.as_slice()?, Some(batch.sequences()))?);
                }
                if let Some((tokens, limit)) = &total {
                    input.total_lengths = Some(Lengths { tokens: tokens.as_slice()?, limit: *limit });
                }
                let mut scratch = vec![Moments::default(); openrlhf_scratch_len(&input)];
                py.detach(|| self.0.update(&batch, &input, &settings, &mut scratch)).or_raise(py)
            })
        }

        /// The keys of all batches together, as a dict; the settings are those of ``tokenwise_rl.openrlhf_metrics``.
        #[pyo3(signature = (**settings))]
        fn metrics<'py>(&self, py: Python<'py>, settings: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
            let settings = config(settings)?;
            let settings: OpenRlhfConfig<'_> = settings.read("config").or_raise(py)?;
            entries(py, self.0.metrics(&settings).or_raise(py)?.entries())
        }
    }
}
