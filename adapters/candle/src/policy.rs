//! Logits to log-probabilities and entropies.

use candle_core::{CpuStorage, CustomOp1, DType, Layout as Strides, Shape, Tensor, WithDType, D};
use tokenwise::{
    policy::{self, Logit, LogitsGradientInput, PolicyConfig},
    Batch, Layout, Mask, Real,
};

use crate::{
    read::{computed, whole, Numbers},
    Error, Result,
};

/// What [`log_probs_and_entropy`] reads.
#[derive(Clone, Copy, Debug)]
pub struct LogProbInput<'a> {
    /// Logits, `[…, vocabulary]`, of the positions that predicted the tokens.
    pub logits: &'a Tensor,
    /// The emitted tokens, `[…]`, as u8, u32 or i64.
    pub tokens: &'a Tensor,
}

/// What [`log_probs_and_entropy`] returns, in the shape of the tokens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogProbs {
    /// Log-probabilities of the emitted tokens; 0 in dropped slots.
    pub log_probs: Tensor,
    /// Entropies; 0 in dropped slots.
    pub entropy: Tensor,
}

/// Log-probabilities of the emitted tokens and entropies, in one pass over the logits, with a gradient to the logits.
///
/// On the CPU both directions are one operation without an intermediate of the size of the logits. bf16 and f16 logits
/// are computed in f32, which is the type of the results. Logits on other devices stay there and pass through candle's
/// own operations.
///
/// # Errors
///
/// [`tokenwise::Error::TokenId`] for a kept token outside the vocabulary, [`tokenwise::Error::Length`] if a tensor does
/// not fit the batch, [`tokenwise::Error::Config`] if the temperature is not positive; [`Error`] for types.
///
/// # Example
///
/// ```
/// use candle_core::{Device, Tensor, Var};
/// use tokenwise::{Batch, Layout, Mask};
/// use tokenwise_candle::{log_probs_and_entropy, LogProbInput};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let logits = Var::new(&[[[0.0, 0.0], [f64::NAN, 1.0]]], &Device::Cpu)?;
/// let tokens = Tensor::new(&[[1_u32, 0]], &Device::Cpu)?;
/// let policy = log_probs_and_entropy(&batch, LogProbInput { logits: &logits, tokens: &tokens }, &Default::default())?;
/// let gradients = policy.log_probs.sum_all()?.backward()?;
/// let gradient = gradients.get(&logits).map(|gradient| gradient.to_vec3::<f64>());
/// assert_eq!(gradient.transpose()?, Some(vec![vec![vec![-0.5, 0.5], vec![0.0, 0.0]]]));
/// # Ok::<(), tokenwise_candle::Error>(())
/// ```
pub fn log_probs_and_entropy(batch: &Batch<'_>, input: LogProbInput<'_>, config: &PolicyConfig) -> Result<LogProbs> {
    let (vocab, dims) = rows_of(input.logits)?;
    let tokens: Vec<u32> = ids(batch, input.tokens, vocab)?;
    if !input.logits.device().is_cpu() {
        return on_device(batch, input.logits, tokens, config);
    }
    let rows = Rows { tokens, keep: batch.mask().as_slice().to_vec(), vocab, config: *config, entropy: true };
    let both = rows.on_host(input.logits, [&[2], dims].concat())?;
    Ok(LogProbs { log_probs: both.get(0)?, entropy: both.get(1)? })
}

/// Log-probabilities of the emitted tokens, as [`log_probs_and_entropy`] has them, bit for bit, in value and gradient.
/// For losses that read no entropy: it is not computed, and the result is one tensor, not a part of another.
///
/// # Errors
///
/// As [`log_probs_and_entropy`].
pub fn token_log_probs(batch: &Batch<'_>, input: LogProbInput<'_>, config: &PolicyConfig) -> Result<Tensor> {
    let (vocab, dims) = rows_of(input.logits)?;
    let tokens: Vec<u32> = ids(batch, input.tokens, vocab)?;
    if !input.logits.device().is_cpu() {
        return Ok(on_device(batch, input.logits, tokens, config)?.log_probs);
    }
    let rows = Rows { tokens, keep: batch.mask().as_slice().to_vec(), vocab, config: *config, entropy: false };
    rows.on_host(input.logits, dims.to_vec())
}

/// The size of the vocabulary, and the dimensions that count rows.
fn rows_of(logits: &Tensor) -> Result<(usize, &[usize])> {
    match logits.dims().split_last() {
        Some((&vocab, dims)) => Ok((vocab, dims)),
        None => Err(Error::Rank { input: "logits" }),
    }
}

/// Token ids on the host. What a dropped slot holds is not looked at, so it may be negative.
fn ids(batch: &Batch<'_>, tokens: &Tensor, vocab: usize) -> Result<Vec<u32>> {
    let expected = batch.tokens();
    if tokens.elem_count() != expected {
        return Err(tokenwise::Error::Length { what: "tokens", expected, got: tokens.elem_count() }.into());
    }
    let keep = batch.mask().as_slice();
    if tokens.dtype() != DType::I64 {
        let tokens: Vec<u32> = match tokens.dtype() {
            DType::U32 => Numbers::<u32>::of(tokens)?.slice()?.to_vec(),
            _ => whole("tokens", tokens)?,
        };
        let outside = tokens.iter().zip(keep).position(|(&id, &keep)| keep && id as usize >= vocab);
        return match outside {
            Some(index) => Err(tokenwise::Error::TokenId { index, id: tokens[index], vocab }.into()),
            None => Ok(tokens),
        };
    }
    let numbers = tokens.flatten_all()?.to_vec1::<i64>()?;
    let convert = |(index, (got, &keep)): (usize, (i64, &bool))| match u32::try_from(got) {
        _ if !keep => Ok(0),
        Ok(id) if (id as usize) < vocab => Ok(id),
        Ok(id) => Err(tokenwise::Error::TokenId { index, id, vocab }.into()),
        Err(_) => Err(Error::Entry { input: "tokens", index, got }),
    };
    numbers.into_iter().zip(keep).enumerate().map(convert).collect()
}

/// Rows of logits and what the gradient needs beside them.
struct Rows {
    tokens: Vec<u32>,
    keep: Vec<bool>,
    vocab: usize,
    config: PolicyConfig,
    /// Whether entropies follow the log-probabilities.
    entropy: bool,
}

impl Rows {
    /// The operation over logits on the CPU.
    fn on_host(self, logits: &Tensor, shape: Vec<usize>) -> Result<Tensor> {
        let values = match logits.dtype() {
            DType::F32 => self.forward::<f32>(logits)?,
            DType::F64 => self.forward::<f64>(logits)?,
            DType::BF16 => self.forward::<half::bf16>(logits)?,
            DType::F16 => self.forward::<half::f16>(logits)?,
            got => return Err(Error::DType { input: "logits", expected: "f32, f64, bf16 or f16".into(), got }),
        };
        Ok(logits.apply_op1(RowsOp { rows: self, values, shape })?)
    }

    /// Every row is on its own: the layout does not matter.
    fn batch(&self) -> tokenwise::Result<Batch<'_>> {
        Batch::new(Layout::padded(1, self.keep.len())?, Mask::new(&self.keep))
    }

    /// Log-probabilities, then entropies if they are wanted.
    fn forward<L>(&self, logits: &Tensor) -> Result<CpuStorage>
    where
        L: Logit + WithDType,
        L::Compute: WithDType,
    {
        let numbers = Numbers::<L>::of(logits)?;
        let (batch, len) = (self.batch()?, self.keep.len());
        let input = policy::LogProbInput { logits: numbers.slice()?, vocab: self.vocab, tokens: &self.tokens };
        let mut values = vec![L::Compute::narrow(0.0); if self.entropy { 2 * len } else { len }];
        if self.entropy {
            let (log_probs, entropy) = values.split_at_mut(len);
            let output = policy::LogProbOutput { log_probs, entropy };
            policy::log_probs_and_entropy(&batch, input, &self.config, output)?;
        } else {
            policy::token_log_probs(&batch, input, &self.config, &mut values)?;
        }
        Ok(L::Compute::to_cpu_storage_owned(values))
    }

    /// The gradient to the logits, in the type of the logits.
    fn backward<L>(&self, logits: &Tensor, of_results: &Tensor) -> Result<Tensor>
    where
        L: Logit + WithDType,
        L::Compute: WithDType,
    {
        let (numbers, slopes) = (Numbers::<L>::of(logits)?, Numbers::<L::Compute>::of(of_results)?);
        let (logits_slice, slopes) = (numbers.slice()?, slopes.slice()?);
        let none = vec![L::Compute::narrow(0.0); if self.entropy { 0 } else { slopes.len() }];
        let (grad_log_probs, grad_entropy) = match self.entropy {
            true => slopes.split_at(slopes.len() / 2),
            false => (slopes, &none[..]),
        };
        let mut gradient = vec![L::Compute::narrow(0.0); logits_slice.len()];
        policy::logits_gradient(
            &self.batch()?,
            LogitsGradientInput {
                logits: logits_slice,
                vocab: self.vocab,
                tokens: &self.tokens,
                grad_log_probs,
                grad_entropy,
            },
            &self.config,
            &mut gradient,
        )?;
        Ok(Tensor::from_vec(gradient, logits.shape(), logits.device())?.to_dtype(logits.dtype())?)
    }
}

struct RowsOp {
    rows: Rows,
    values: CpuStorage,
    shape: Vec<usize>,
}

impl CustomOp1 for RowsOp {
    fn name(&self) -> &'static str {
        "tokenwise-log-probs"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Strides) -> candle_core::Result<(CpuStorage, Shape)> {
        Ok((self.values.clone(), self.shape.clone().into()))
    }

    fn bwd(&self, logits: &Tensor, _: &Tensor, of_results: &Tensor) -> candle_core::Result<Option<Tensor>> {
        let gradient = match logits.dtype() {
            DType::F64 => self.rows.backward::<f64>(logits, of_results),
            DType::BF16 => self.rows.backward::<half::bf16>(logits, of_results),
            DType::F16 => self.rows.backward::<half::f16>(logits, of_results),
            _ => self.rows.backward::<f32>(logits, of_results),
        };
        Ok(Some(gradient?))
    }
}

/// The same by candle's operations. The results agree with the core's within rounding.
pub(crate) fn on_device(
    batch: &Batch<'_>,
    logits: &Tensor,
    mut tokens: Vec<u32>,
    config: &PolicyConfig,
) -> Result<LogProbs> {
    let (temperature, device) = (config.temperature, logits.device());
    if !(temperature > 0.0 && temperature.is_finite()) {
        let must_be = "positive and finite";
        return Err(tokenwise::Error::Config { what: "temperature", must_be, got: temperature }.into());
    }
    let (vocab, dims) = rows_of(logits)?;
    let dims = dims.to_vec();
    let rows = logits.elem_count() / vocab.max(1);
    if rows != batch.tokens() {
        return Err(tokenwise::Error::Length { what: "logits", expected: batch.tokens(), got: rows }.into());
    }
    let keep = batch.mask().as_slice();
    tokens.iter_mut().zip(keep).filter(|(_, keep)| !**keep).for_each(|(token, _)| *token = 0);
    let kept: Vec<u8> = keep.iter().map(|&keep| keep.into()).collect();
    let kept = Tensor::from_vec(kept, (rows, 1), device)?;
    let tokens = Tensor::from_vec(tokens, (rows, 1), device)?;

    let logits = computed("logits", logits)?.reshape((rows, vocab))?;
    let logits = kept.broadcast_as((rows, vocab))?.where_cond(&logits, &logits.zeros_like()?)?;
    // p log p of an excluded entry is 0 · −∞; a large finite number gives 0, and gradient 0
    let logits = (logits / temperature)?.maximum(-1e30)?;
    let shifted = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?.detach())?;
    let log_sum = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    let all = shifted.broadcast_sub(&log_sum)?;
    let chosen = all.gather(&tokens, D::Minus1)?;
    let entropy = (all.exp()? * &all)?.sum_keepdim(D::Minus1)?.neg()?;
    let masked = |column: Tensor| kept.where_cond(&column, &column.zeros_like()?)?.reshape(dims.as_slice());
    Ok(LogProbs { log_probs: masked(chosen)?, entropy: masked(entropy)? })
}

#[cfg(test)]
mod tests;
