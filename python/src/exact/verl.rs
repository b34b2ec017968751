use pyo3::{prelude::*, types::PyDict};
use tokenwise::{
    exact::Partial as _,
    metric::{VerlConfig, VerlInput},
    Mask,
};

use super::{read_some, state, token_columns, LengthsGiven};
use crate::{columns::in_precision, error::OrRaise as _, read::Reader, value::config};

token_columns! {
    VerlInput: scores, rewards, advantages, returns, values, predictions, log_probs, ref_log_probs, old_log_probs,
    rollout_log_probs, old_entropies, entropies
}

state! {
    /// The sums and extremes behind the keys that verl logs for a batch, not rounded.
    ExactVerl, metrics: VerlConfig<'_>, {
        /// Adds a batch: the arrays of ``tokenwise_rl.verl_metrics``, by name. Lengths are given as
        /// ``{"tokens": …, "limit": …}``.
        #[pyo3(signature = (
            *, mask = None, cu_seqlens = None, response_lengths = None, prompt_lengths = None,
            mask_before_rejection = None, config = None, **columns
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            response_lengths: Option<&Bound<'py, PyAny>>,
            prompt_lengths: Option<&Bound<'py, PyAny>>,
            mask_before_rejection: Option<&Bound<'py, PyAny>>,
            config: Option<&Bound<'py, PyDict>>,
            columns: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<()> {
            let settings = self::config(config)?;
            let settings: VerlConfig<'_> = settings.read("config").or_raise(py)?;
            let mut reader = Reader::new(py);
            let columns = read_some(&mut reader, COLUMNS, columns, mask, cu_seqlens)?;
            let responses = LengthsGiven::read(&mut reader, "response_lengths", response_lengths)?;
            let prompts = LengthsGiven::read(&mut reader, "prompt_lengths", prompt_lengths)?;
            let before = mask_before_rejection.map(|mask| reader.flags("mask_before_rejection", mask)).transpose()?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let mut input = input::<R>(&columns);
                input.response_lengths = responses.lengths()?;
                input.prompt_lengths = prompts.lengths()?;
                if let Some(before) = &before {
                    input.mask_before_rejection = Some(Mask::new(before.as_slice()?));
                }
                py.detach(|| self.0.update(&batch, &input, &settings)).or_raise(py)
            })
        }
    }
}
