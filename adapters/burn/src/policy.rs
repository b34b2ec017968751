//! Logits to log-probabilities and entropies, on the device.

use burn::tensor::{Bool, DType, Int, Tensor, TensorData};
use tokenwise::{policy::PolicyConfig, Batch};

use crate::{inputs::computed, Error, Result};

/// What [`log_probs_and_entropy`] reads.
#[derive(Clone, Debug)]
pub struct LogProbInput<const L: usize, const D: usize> {
    /// Logits, `[…, vocabulary]`, of the positions that predicted the tokens.
    pub logits: Tensor<L>,
    /// The emitted tokens, `[…]`.
    pub tokens: Tensor<D, Int>,
}

/// What [`log_probs_and_entropy`] returns, in the shape of the tokens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogProbs<const D: usize> {
    /// Log-probabilities of the emitted tokens; 0 in dropped slots.
    pub log_probs: Tensor<D>,
    /// Entropies; 0 in dropped slots.
    pub entropy: Tensor<D>,
}

/// Log-probabilities of the emitted tokens and entropies, with a gradient to the logits.
///
/// This is burn's own arithmetic on the device of the logits, with the conventions of tokenwise: dropped slots are
/// selected away before any arithmetic, an excluded entry (logit −∞) has no entropy, f16 and bf16 are computed in f32.
/// It agrees with [`tokenwise::policy::log_probs_and_entropy`] within rounding.
///
/// # Errors
///
/// [`tokenwise::Error::TokenId`] for a kept token outside the vocabulary, [`tokenwise::Error::Length`] if a tensor does
/// not fit the batch, [`tokenwise::Error::Config`] if the temperature is not positive.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use tokenwise::{Batch, Layout, Mask};
/// use tokenwise_burn::{log_probs_and_entropy, LogProbInput};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let device = Device::flex().autodiff();
/// let logits = Tensor::<3>::from_floats([[[0.0, 0.0], [f32::NAN, 1.0]]], &device).require_grad();
/// let tokens = Tensor::<2, Int>::from_data([[1, 0]], &device);
/// let policy = log_probs_and_entropy(&batch, LogProbInput { logits: logits.clone(), tokens }, &Default::default())?;
/// let gradient = logits.grad(&policy.log_probs.sum().backward()).map(|gradient| gradient.try_to_vec_as::<f32>());
/// assert_eq!(gradient.transpose()?, Some(vec![-0.5, 0.5, 0.0, 0.0]));
/// # Ok::<(), tokenwise_burn::Error>(())
/// ```
pub fn log_probs_and_entropy<const L: usize, const D: usize>(
    batch: &Batch<'_>,
    input: LogProbInput<L, D>,
    config: &PolicyConfig,
) -> Result<LogProbs<D>> {
    let (rows, vocab) = checked(batch, &input, config)?;
    let (dims, device) = (input.tokens.dims(), input.logits.device());
    let tokens = ids(batch, &input.tokens, vocab)?;
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [rows, 1]), &device);
    let dropped: Vec<bool> = batch.mask().as_slice().iter().map(|keep| !keep).collect();
    let dropped = Tensor::<2, Bool>::from_data(TensorData::new(dropped, [rows, 1]), &device);

    let logits = input.logits.reshape([rows, vocab]);
    let dtype: DType = computed(logits.dtype());
    let logits = logits.cast(dtype).mask_fill(dropped.clone().expand([rows, vocab]), 0.0);
    // p log p of an excluded entry is 0 · −∞; a large finite number gives 0, and gradient 0
    let logits = logits.div_scalar(config.temperature).clamp_min(-1e30);
    let shifted = logits.clone() - logits.detach().max_dim(1);
    let all = shifted.clone() - shifted.exp().sum_dim(1).log();
    let masked = |column: Tensor<2>| column.mask_fill(dropped.clone(), 0.0).reshape(dims);
    let entropy = (all.clone().exp() * all.clone()).sum_dim(1).neg();
    Ok(LogProbs { log_probs: masked(all.gather(1, tokens)), entropy: masked(entropy) })
}

/// The number of rows and that of entries of each, if config and logits are fit for the batch.
pub(crate) fn checked<const L: usize, const D: usize>(
    batch: &Batch<'_>,
    input: &LogProbInput<L, D>,
    config: &PolicyConfig,
) -> Result<(usize, usize)> {
    let (temperature, rows) = (config.temperature, batch.tokens());
    if !(temperature > 0.0 && temperature.is_finite()) {
        let must_be = "positive and finite";
        return Err(tokenwise::Error::Config { what: "temperature", must_be, got: temperature }.into());
    }
    let entries = input.logits.shape().num_elements();
    let Some(&vocab) = input.logits.dims().last() else {
        let (what, expected) = ("logits".to_owned(), "a dimension for the vocabulary".to_owned());
        return Err(Error::Shape { what, expected, got: Vec::new() });
    };
    let expected = rows.saturating_mul(vocab);
    if entries != expected {
        return Err(tokenwise::Error::Length { what: "logits", expected, got: entries }.into());
    }
    Ok((rows, vocab))
}

/// Token ids on the host. What a dropped slot holds is not looked at.
pub(crate) fn ids<const D: usize>(batch: &Batch<'_>, tokens: &Tensor<D, Int>, vocab: usize) -> Result<Vec<i64>> {
    let (numbers, expected) = (tokens.try_to_vec_as::<i64>()?, batch.tokens());
    if numbers.len() != expected {
        return Err(tokenwise::Error::Length { what: "tokens", expected, got: numbers.len() }.into());
    }
    let convert = |(index, (got, &keep)): (usize, (i64, &bool))| match u32::try_from(got) {
        _ if !keep => Ok(0),
        Ok(id) if (id as usize) < vocab => Ok(got),
        Ok(id) => Err(tokenwise::Error::TokenId { index, id, vocab }.into()),
        Err(_) => Err(Error::Entry { input: "tokens", index, got }),
    };
    numbers.into_iter().zip(batch.mask().as_slice()).enumerate().map(convert).collect()
}
