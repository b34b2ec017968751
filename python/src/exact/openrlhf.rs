use pyo3::{prelude::*, types::PyDict};
use tokenwise::{
    exact::Partial as _,
    metric::{openrlhf_scratch_len, OpenRlhfConfig, OpenRlhfInput},
    Moments,
};

use super::{read_some, reals_of, slice_of, some, state, token_columns, LengthsGiven};
use crate::{
    columns::in_precision,
    domain::{group_ids, groups as groups_of},
    error::OrRaise as _,
    read::Reader,
    value::config,
};

token_columns! { OpenRlhfInput: log_probs, ref_log_probs, entropies, rewards, predictions }

state! {
    /// The sums behind the keys that OpenRLHF logs for a batch, not rounded.
    ExactOpenRlhf, metrics: OpenRlhfConfig<'_>, {
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
            let total = LengthsGiven::read(&mut reader, "total_lengths", total_lengths)?;
            let truncated = some(truncated).map(|given| reader.flags("truncated", given)).transpose()?;
            let ids = some(groups).map(group_ids).transpose()?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let scores = some(scores)
                    .map(|given| reals_of::<R>(&mut reader, "scores", given, columns.precision))
                    .transpose()?;
                let mut input = input::<R>(&columns);
                input.scores = slice_of(&scores)?;
                input.truncated = slice_of(&truncated)?;
                if let Some(ids) = &ids {
                    input.groups = Some(groups_of(py, ids.as_slice()?, Some(batch.sequences()))?);
                }
                input.total_lengths = total.lengths()?;
                let mut scratch = vec![Moments::default(); openrlhf_scratch_len(&input)];
                py.detach(|| self.0.update(&batch, &input, &settings, &mut scratch)).or_raise(py)
            })
        }
    }
}
