use pyo3::{prelude::*, types::PyDict};
use tokenwise::{
    exact::Partial as _,
    metric::{trl_scratch_len, TrlConfig, TrlInput, TrlRewards},
    Moments,
};

use super::{read_some, reals_of, slice_of, some, state, token_columns};
use crate::{
    columns::in_precision,
    domain::{group_ids, groups as groups_of},
    error::{wrong, OrRaise as _},
    read::Reader,
    value::config,
};

token_columns! {
    TrlInput: log_probs, old_log_probs, ref_log_probs, rollout_log_probs, weights, advantages, entropies
}

state! {
    /// The sums and extremes behind the keys that TRL logs for a batch, not rounded.
    ExactTrl, metrics: TrlConfig, {
        /// Adds a batch: the arrays of ``tokenwise_rl.trl_metrics``, by name, without what the loss returned.
        ///
        /// ``rewards`` are ``{"sources": …, "source_weights": …}``, with ``groups``; all completions of a prompt are in
        /// one batch. For a loss without a clip, ``advantages`` are left out: only the clip's keys read them.
        #[pyo3(signature = (
            *, mask = None, cu_seqlens = None, rewards = None, groups = None, completion_lengths = None,
            truncated = None, prompt_lengths = None, config = None, **columns
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            rewards: Option<&Bound<'py, PyAny>>,
            groups: Option<&Bound<'py, PyAny>>,
            completion_lengths: Option<&Bound<'py, PyAny>>,
            truncated: Option<&Bound<'py, PyAny>>,
            prompt_lengths: Option<&Bound<'py, PyAny>>,
            config: Option<&Bound<'py, PyDict>>,
            columns: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<()> {
            let settings: TrlConfig = self::config(config)?.read("config").or_raise(py)?;
            let mut reader = Reader::new(py);
            let columns = read_some(&mut reader, COLUMNS, columns, mask, cu_seqlens)?;
            let mut indices =
                |name, given| some(given).map(|given| reader.indices(name, given, None)).transpose();
            let completions = indices("completion_lengths", completion_lengths)?;
            let prompts = indices("prompt_lengths", prompt_lengths)?;
            let truncated = some(truncated).map(|given| reader.flags("truncated", given)).transpose()?;
            let ids = match (some(rewards), some(groups)) {
                (Some(_), None) => {
                    return Err(wrong(py, "missing", "groups", "the prompt of each completion", "nothing"))
                }
                (_, groups) => groups.map(group_ids).transpose()?,
            };
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let sources = some(rewards)
                    .map(|given| reals_of::<R>(&mut reader, "sources", &given.get_item("sources")?, columns.precision))
                    .transpose()?;
                let source_weights =
                    some(rewards).map(|given| given.get_item("source_weights")?.extract::<Vec<f64>>()).transpose()?;
                let source_weights = source_weights.unwrap_or_default();
                let mut input = input::<R>(&columns);
                if let (Some(sources), Some(ids)) = (&sources, &ids) {
                    let groups = groups_of(py, ids.as_slice()?, Some(batch.sequences()))?;
                    input.rewards =
                        Some(TrlRewards { groups, sources: sources.as_slice()?, source_weights: &source_weights });
                }
                input.completion_lengths = slice_of(&completions)?;
                input.prompt_lengths = slice_of(&prompts)?;
                input.truncated = slice_of(&truncated)?;
                let mut scratch = vec![Moments::default(); trl_scratch_len(&input)];
                py.detach(|| self.0.update(&batch, &input, &settings, &mut scratch)).or_raise(py)
            })
        }
    }
}
