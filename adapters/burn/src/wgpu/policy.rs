//! Logits to log-probabilities and entropies: one pass over the logits forth, one back.

use std::sync::Arc;

use burn::{
    backend::{
        autodiff::{
            checkpoint::{
                base::Checkpointer,
                strategy::{BalancedCheckpointing, CheckpointStrategy, NoCheckpointing},
            },
            grads::Gradients,
            ops::{unary, Backward, Ops, OpsKind},
        },
        Autodiff, Cube, DispatchKindConversion, DispatchTensor, GradientCheckpointingStrategy,
    },
    tensor::{DType, Tensor},
};
use tokenwise::{policy::PolicyConfig, Batch, Layout, Mask};
use tokenwise_gpu::{GpuBatch, GpuError, Input, LogProbColumns, LogitColumns};

use super::{call::words, OnDevice};
use crate::{
    policy::{checked, ids, log_probs_and_entropy, LogProbInput, LogProbs},
    Error, Result,
};

impl OnDevice {
    /// [`log_probs_and_entropy()`](crate::log_probs_and_entropy()) on the device, with a gradient to the logits: one
    /// pass over them forth and one back, which writes the gradient and no other tensor of their size. Logits may be
    /// f32, f16 or bf16.
    ///
    /// If a logit of a kept row is NaN or +∞, a token is not in the vocabulary, or the call exceeds a limit of the
    /// device, the function of the same name computes instead, by burn's operations.
    ///
    /// # Errors
    ///
    /// As [`log_probs_and_entropy()`](crate::log_probs_and_entropy()); [`Error::Device`] for a tensor of another
    /// device, [`Error::DType`] for f64; [`Error::Gpu`] if the device fails.
    ///
    /// # Panics
    ///
    /// `backward` if the device fails then, as burn's own operations do: a backward pass cannot return an error.
    pub fn log_probs_and_entropy<const L: usize, const D: usize>(
        &self,
        batch: &Batch<'_>,
        input: LogProbInput<L, D>,
        config: &PolicyConfig,
    ) -> Result<LogProbs<D>> {
        let (rows, vocab) = checked(batch, &input, config)?;
        let dims = input.tokens.dims();
        let entries = input.tokens.shape().num_elements();
        if entries != rows {
            return Err(tokenwise::Error::Length { what: "tokens", expected: rows, got: entries }.into());
        }
        let logits = self.column("logits", &input.logits)?;
        if rows == 0 {
            return log_probs_and_entropy(batch, input, config);
        }
        let host;
        let tokens = if words(input.tokens.dtype()) {
            Input::Device(self.id_column("tokens", &input.tokens)?)
        } else {
            let numbers = ids(batch, &input.tokens, vocab)?;
            host = numbers.into_iter().map(|id| id as u32).collect::<Vec<u32>>();
            Input::Words(&host)
        };

        let mut recording = self.gpu().record();
        let columns = LogitColumns { logits: Input::Device(logits), vocab, tokens };
        let found = match recording.log_probs(&GpuBatch::new(*batch), &columns, config) {
            Ok(found) => found,
            Err(GpuError::Unsupported(_) | GpuError::Limit { .. }) => {
                return log_probs_and_entropy(batch, input, config)
            }
            Err(error) => return Err(error.into()),
        };
        let out = [&found.log_probs, &found.entropy].map(|column| self.tensor(&mut recording, column, [rows]));
        let [log_probs, entropy] = out;
        let (log_probs, entropy) = (log_probs?, entropy?);
        let done = pollster::block_on(recording.submit())?;
        if done.report().special {
            return log_probs_and_entropy(batch, input, config);
        }

        // one output, because an operation of burn has one
        let both = Tensor::cat(vec![log_probs, entropy], 0);
        let both = match input.logits.gradient_checkpointing_strategy() {
            None => both,
            Some(strategy) => {
                let keep = batch.mask().as_slice().to_vec();
                let logits = input.logits.reshape([rows * vocab]);
                let saved = Saved(Arc::new(Of { on: self.clone(), found, keep, dtype: logits.dtype() }));
                match strategy {
                    GradientCheckpointingStrategy::Disabled => tracked::<NoCheckpointing>(logits, saved, both)?,
                    GradientCheckpointingStrategy::Balanced => tracked::<BalancedCheckpointing>(logits, saved, both)?,
                }
            }
        };
        let part = |first: usize| both.clone().slice([first..first + rows]).reshape(dims);
        Ok(LogProbs { log_probs: part(0), entropy: part(rows) })
    }
}

/// What the way back needs of the way forth.
#[derive(Clone, Debug)]
struct Saved(Arc<Of>);

#[derive(Debug)]
struct Of {
    on: OnDevice,
    /// Its columns hold the logits and the tokens.
    found: LogProbColumns,
    keep: Vec<bool>,
    /// That of the logits, which their gradient has too.
    dtype: DType,
}

/// Joins the outputs to the graph of the logits.
fn tracked<C: CheckpointStrategy>(logits: Tensor<1>, saved: Saved, both: Tensor<1>) -> Result<Tensor<1>>
where
    DispatchTensor: DispatchKindConversion<Autodiff<Cube, C>>,
{
    let refused = |error| Error::Buffer { input: "logits".to_owned(), reason: format!("{error:?}") };
    let logits = logits.try_into_primitive::<Autodiff<Cube, C>>().map_err(refused)?;
    let both = both.try_into_primitive::<Cube>().map_err(refused)?;
    let out = match LogitsGradient.prepare::<C>([logits.node()]).compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(saved, both),
        OpsKind::UnTracked(prepared) => prepared.finish(both),
    };
    Ok(Tensor::from_primitive::<Autodiff<Cube, C>>(out))
}

#[derive(Debug)]
struct LogitsGradient;

impl Backward<Cube, 1> for LogitsGradient {
    type State = Saved;

    #[allow(clippy::panic, reason = "a backward pass cannot return an error; burn's own operations panic too")]
    fn backward(self, ops: Ops<Saved, 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let saved = ops.state;
        unary::<Cube, _>(ops.parents, ops.node, grads, |grad| {
            let found = saved.0.gradient(Tensor::from_primitive::<Cube>(grad)).and_then(|grad| {
                grad.try_into_primitive::<Cube>()
                    .map_err(|error| Error::Buffer { input: "logits".to_owned(), reason: format!("{error:?}") })
            });
            match found {
                Ok(grad) => grad,
                Err(error) => panic!("gradient of the logits: {error}"),
            }
        });
    }
}

impl Of {
    /// The gradient of the logits, from those of the log-probabilities and, after them, of the entropies.
    fn gradient(&self, grad: Tensor<1>) -> Result<Tensor<1>> {
        let (on, rows) = (&self.on, self.keep.len());
        // rows are computed alone, so how they form sequences does not matter
        let batch = GpuBatch::new(Batch::new(Layout::padded(1, rows)?, Mask::new(&self.keep))?);
        let part = |name, first: usize| on.column(name, &grad.clone().slice([first..first + rows]));
        let (log_probs, entropy) = (part("grad_log_probs", 0)?, part("grad_entropy", rows)?);
        let (out, target) = on.room(self.found.logits().len() as usize)?;
        let read = [self.found.logits(), self.found.tokens(), &log_probs, &entropy];
        let mut recording = on.gpu().record();
        let (log_probs, entropy) = (Input::from(&log_probs), Input::from(&entropy));
        // a kernel cannot read and write ranges of one buffer
        if read.iter().all(|column| column.buffer().0 != target.buffer().0) {
            recording.logits_gradient_to(&batch, &self.found, &log_probs, Some(&entropy), &target)?;
        } else {
            let grad = recording.logits_gradient(&batch, &self.found, &log_probs, Some(&entropy))?;
            recording.copy_to(&grad, &target)?;
        }
        pollster::block_on(recording.submit())?;
        Ok(out.cast(self.dtype))
    }
}
