//! Logits in half precision, read as they are and computed in `f32`.

use ::half::{bf16, f16, slice::HalfBitsSliceExt as _};
use pyo3::prelude::*;
use tokenwise::{
    policy::{self, LogProbInput, LogProbOutput, Logit, LogitsGradientInput, LogitsInput, PolicyConfig},
    Batch,
};
use tokenwise_catalogue::{Array, Columns, Entry, Refusal, Value};

use crate::{
    error::{refusal, OrRaise as _},
    inputs::Inputs,
    read::Slice,
    spare::Float as _,
};

/// Whether a formula reads such logits without a copy in `f32`.
pub(crate) fn covers(entry: &Entry) -> bool {
    matches!(
        entry.name,
        "log_probs_and_entropy" | "token_log_probs" | "entropy" | "sum_squared_probs" | "logits_gradient"
    )
}

/// Runs one of these formulas.
pub(crate) fn run<R: Slice>(
    py: Python<'_>,
    entry: &'static Entry,
    given: &Inputs<'_>,
    batch: Option<Batch<'_>>,
    config: &Value,
    outputs: &mut Columns<R>,
) -> PyResult<()> {
    let Some(batch) = batch else { return Ok(()) };
    let config: PolicyConfig = config.read("config").or_raise(py)?;
    let Some((_, bits, kind)) = given.halves.first() else { return Ok(()) };
    let bits = bits.as_slice()?;
    let column = |name: &str| {
        let found = given.reals.iter().find(|(column, _)| column.name == name);
        found.and_then(|(_, given)| f32::slice(given)).unwrap_or_default()
    };
    let call = Call {
        entry,
        batch,
        config,
        vocab: given.others.size("vocab").unwrap_or(0),
        tokens: given.others.index("tokens").unwrap_or_default(),
        grads: [column("grad_log_probs"), column("grad_entropy")],
    };
    let mut single = Columns::<f32>::new();
    for (name, output) in outputs.iter() {
        let room = f32::SPARE.take(output.len()).unwrap_or_else(|| vec![0.0; output.len()]);
        single.set(name, Array::Real(room));
    }
    let ran = py.detach(|| match kind.as_str() {
        "bf16" => call.run(bits.reinterpret_cast::<bf16>(), &mut single),
        _ => call.run(bits.reinterpret_cast::<f16>(), &mut single),
    });
    ran.map_err(|error| refusal(py, &error))?;
    for (name, output) in single {
        if let Array::Real(numbers) = output {
            outputs.set(name, Array::Real(R::of_single(numbers)));
        }
    }
    Ok(())
}

struct Call<'a> {
    entry: &'static Entry,
    batch: Batch<'a>,
    config: PolicyConfig,
    vocab: usize,
    tokens: &'a [u32],
    grads: [&'a [f32]; 2],
}

impl Call<'_> {
    fn run<L: Logit<Compute = f32>>(&self, logits: &[L], outputs: &mut Columns<f32>) -> Result<(), Refusal> {
        let Self { entry, batch, config, vocab, tokens, grads: [grad_log_probs, grad_entropy] } = *self;
        match entry.name {
            "log_probs_and_entropy" => {
                let [log_probs, entropy] = outputs.reals_mut(["log_probs", "entropy"])?;
                let input = LogProbInput { logits, vocab, tokens };
                policy::log_probs_and_entropy(&batch, input, &config, LogProbOutput { log_probs, entropy })?;
            }
            "token_log_probs" => {
                let input = LogProbInput { logits, vocab, tokens };
                policy::token_log_probs(&batch, input, &config, outputs.real_mut("log_probs")?)?;
            }
            "entropy" => {
                policy::entropy(&batch, LogitsInput { logits, vocab }, &config, outputs.real_mut("entropy")?)?;
            }
            "sum_squared_probs" => {
                policy::sum_squared_probs(&batch, LogitsInput { logits, vocab }, &config, outputs.real_mut("out")?)?;
            }
            _ => {
                let input = LogitsGradientInput { logits, vocab, tokens, grad_log_probs, grad_entropy };
                policy::logits_gradient(&batch, input, &config, outputs.real_mut("grad_logits")?)?;
            }
        }
        Ok(())
    }
}
