//! Losses as scalars with closed-form gradients.

use candle_core::{backprop::GradStore, CpuStorage, CustomOp1, DType, Layout, Shape, Tensor};
use serde::Serialize;
use tokenwise_catalogue::{Domain, Value};

use crate::{
    call::{entry, run},
    inputs::{Inputs, Named},
    Error, Result, Results,
};

/// A loss.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The loss as a scalar: add other losses, call `backward`.
    pub tensor: Tensor,
    /// Its value in f64, its metrics, and what else the formula wrote.
    pub results: Results,
}

impl Loss {
    /// The loss in f64, before it was rounded to the type of the tensor.
    ///
    /// # Errors
    ///
    /// None: every loss returns this number.
    pub fn value(&self) -> Result<f64> {
        self.results.number("loss")
    }

    /// A number that the loss returns beside its value, such as `clip_fraction` or `kl`.
    ///
    /// # Errors
    ///
    /// [`Error::Output`] if there is none of this name.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.results.number(name)
    }

    /// Gradients of this loss alone.
    ///
    /// # Errors
    ///
    /// Those of candle.
    pub fn backward(&self) -> Result<GradStore> {
        Ok(self.tensor.backward()?)
    }
}

/// Computes a loss by its name, with its closed-form gradient.
///
/// The gradient reaches the inputs for which the formula has one: log-probabilities, the critic's predictions,
/// entropies or logits. Everything else is a constant. Dropped slots are never read and get gradient 0. On the CPU this
/// is an operation of its own; on other devices it is the [`surrogate`], with the same value and gradient.
///
/// # Errors
///
/// Those of the formula; [`Error::NotALoss`]; [`Error`] for inputs that do not fit it.
///
/// # Example
///
/// ```
/// use candle_core::{Device, Tensor, Var};
/// use tokenwise::{Batch, Layout, Mask};
/// use tokenwise_candle::{loss, Inputs};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, true, false]))?;
/// let log_probs = Var::new(&[[-1.0, -0.5, f64::NAN]], &Device::Cpu)?;
/// let advantages = Tensor::new(&[[2.0, -1.0, f64::NAN]], &Device::Cpu)?;
/// let old_log_probs = log_probs.as_detached_tensor();
/// let inputs = Inputs::new()
///     .with("log_probs", log_probs.as_tensor())
///     .with("old_log_probs", &old_log_probs)
///     .with("advantages", &advantages);
/// let loss = loss("ppo_clip", &batch, &inputs, &serde_json::json!({ "clip_high": 0.28 }))?;
/// assert_eq!((loss.value()?, loss.number("clip_fraction")?), (-0.5, 0.0));
/// let gradients = loss.backward()?;
/// let gradient = gradients.get(&log_probs).map(|gradient| gradient.to_vec2::<f64>());
/// assert_eq!(gradient.transpose()?, Some(vec![vec![-1.0, 0.5, 0.0]]));
/// # Ok::<(), tokenwise_candle::Error>(())
/// ```
pub fn loss<'a>(
    name: &str,
    domain: impl Into<Domain<'a>>,
    inputs: &Inputs<'_>,
    config: &(impl Serialize + ?Sized),
) -> Result<Loss> {
    let entry = entry(name)?;
    if entry.gradients().next().is_none() {
        return Err(Error::NotALoss { name: entry.name });
    }
    let named = Named::new(entry, inputs)?;
    let mut results = run(entry, domain.into(), &named, &Value::of(config)?)?;

    let value = results.number("loss")?;
    let mut total: Option<Tensor> = None;
    for (input, output) in entry.gradients() {
        let Some(gradient) = results.take(output.name) else { continue };
        // an optional input that was not given
        let Some(tensor) = named.original(input.name) else { continue };
        let gradient = gradient.reshape(tensor.shape())?;
        total = Some(match total {
            None => joined(tensor, gradient, value)?,
            // the value is in the first term
            Some(total) => (total + joined(tensor, gradient, 0.0)?)?,
        });
    }
    let tensor = total.ok_or(Error::NotALoss { name: entry.name })?;
    Ok(Loss { tensor, results })
}

/// A scalar with this value and this gradient with respect to `input`.
fn joined(input: &Tensor, gradient: Tensor, value: f64) -> Result<Tensor> {
    let input = crate::read::computed("input", input)?;
    if input.device().is_cpu() {
        Ok(input.apply_op1(ClosedForm { value, gradient })?)
    } else {
        surrogate(&input, &gradient, value)
    }
}

/// A scalar whose value and gradient are known.
struct ClosedForm {
    value: f64,
    gradient: Tensor,
}

impl CustomOp1 for ClosedForm {
    fn name(&self) -> &'static str {
        "tokenwise-loss"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> candle_core::Result<(CpuStorage, Shape)> {
        let value = match self.gradient.dtype() {
            DType::F64 => CpuStorage::F64(vec![self.value]),
            _ => CpuStorage::F32(vec![self.value as f32]),
        };
        Ok((value, ().into()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, of_result: &Tensor) -> candle_core::Result<Option<Tensor>> {
        self.gradient.broadcast_mul(of_result).map(Some)
    }
}

/// A scalar with this value and this gradient with respect to `input`, by candle's own operations, on any device:
///
/// ```text
/// s = Σ g x      loss = s − sg(s) + value      ∂loss/∂x = g
/// ```
///
/// Where g is 0, x is not read: it may be NaN.
///
/// # Errors
///
/// Those of candle, if the shapes or types differ.
///
/// # Example
///
/// ```
/// use candle_core::{Device, Tensor, Var};
///
/// let x = Var::new(&[1.0, f64::NAN], &Device::Cpu)?;
/// let loss = tokenwise_candle::surrogate(&x, &Tensor::new(&[0.5, 0.0], &Device::Cpu)?, 7.0)?;
/// assert_eq!(loss.to_scalar::<f64>()?, 7.0);
/// let gradients = loss.backward()?;
/// assert_eq!(gradients.get(&x).map(|gradient| gradient.to_vec1::<f64>()).transpose()?, Some(vec![0.5, 0.0]));
/// # Ok::<(), tokenwise_candle::Error>(())
/// ```
pub fn surrogate(input: &Tensor, gradient: &Tensor, value: f64) -> Result<Tensor> {
    let gradient = gradient.detach();
    // 0 · NaN is NaN
    let read = gradient.ne(0.0)?.where_cond(input, &input.zeros_like()?)?;
    let sum = (read * gradient)?.sum_all()?;
    Ok(((&sum - sum.detach())? + value)?)
}
