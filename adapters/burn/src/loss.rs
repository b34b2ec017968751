//! Losses as scalars with closed-form gradients.

use burn::tensor::{Gradients, Tensor};
use serde::Serialize;
use tokenwise_catalogue::{Domain, Entry, Value};

use crate::{
    call::{entry, run},
    inputs::{Inputs, Named},
    Error, Result, Results,
};

/// A loss.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Loss {
    /// The loss as a tensor of one number: add other losses, call `backward`.
    pub tensor: Tensor<1>,
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
    /// [`Error::NotTracked`] if no input requires a gradient.
    pub fn backward(&self) -> Result<Gradients> {
        if self.tensor.is_tracked() {
            Ok(self.tensor.backward())
        } else {
            Err(Error::NotTracked)
        }
    }
}

/// Computes a loss by its name, with its closed-form gradient.
///
/// The gradient reaches the inputs for which the formula has one: log-probabilities, the critic's predictions,
/// entropies or logits. Everything else is a constant. Dropped slots are never read and get gradient 0. The value of
/// the tensor is the loss.
///
/// # Errors
///
/// Those of the formula; [`Error::NotALoss`]; [`Error`] for inputs that do not fit it.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use tokenwise::{Batch, Layout, Mask};
/// use tokenwise_burn::{loss, Inputs};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, true, false]))?;
/// let device = Device::flex().autodiff();
/// let log_probs = Tensor::<2>::from_floats([[-1.0, -0.5, f32::NAN]], &device).require_grad();
/// let advantages = Tensor::<2>::from_floats([[2.0, -1.0, f32::NAN]], &device);
/// let inputs = Inputs::new()
///     .with("log_probs", &log_probs)
///     .with("old_log_probs", &log_probs.clone().detach())
///     .with("advantages", &advantages);
/// let loss = loss("ppo_clip", &batch, &inputs, &serde_json::json!({ "clip_high": 0.28 }))?;
/// assert_eq!((loss.value()?, loss.number("clip_fraction")?), (-0.5, 0.0));
/// let gradients = loss.backward()?;
/// let gradient = log_probs.grad(&gradients).map(|gradient| gradient.try_to_vec_as::<f32>());
/// assert_eq!(gradient.transpose()?, Some(vec![-1.0, 0.5, 0.0]));
/// # Ok::<(), tokenwise_burn::Error>(())
/// ```
pub fn loss<'a>(
    name: &str,
    domain: impl Into<Domain<'a>>,
    inputs: &Inputs<'_>,
    config: &(impl Serialize + ?Sized),
) -> Result<Loss> {
    let entry = loss_entry(name)?;
    let named = Named::new(entry, inputs)?;
    let results = run(entry, domain.into(), &named, &Value::of(config)?)?;
    joined(entry, &named, results)
}

/// The loss of this name.
pub(crate) fn loss_entry(name: &str) -> Result<&'static Entry> {
    let entry = entry(name)?;
    match entry.gradients().next() {
        Some(_) => Ok(entry),
        None => Err(Error::NotALoss { name: entry.name }),
    }
}

/// The loss with the gradients that were computed for it.
pub(crate) fn joined(entry: &'static Entry, named: &Named<'_, '_>, mut results: Results) -> Result<Loss> {
    let value = results.number("loss")?;
    let mut total: Option<Tensor<1>> = None;
    for (input, output) in entry.gradients() {
        let Some(gradient) = results.take(output.name) else { continue };
        // an optional input that was not given
        let Some(tensor) = named.tensor(input.name) else { continue };
        let tensor = tensor.clone().cast(gradient.dtype());
        total = Some(match total {
            None => surrogate(&tensor, gradient, value)?,
            // the value is in the first term
            Some(total) => total + surrogate(&tensor, gradient, 0.0)?,
        });
    }
    let tensor = total.ok_or(Error::NotALoss { name: entry.name })?;
    Ok(Loss { tensor, results })
}

/// A scalar with this value and this gradient with respect to `input`, by burn's own operations:
///
/// ```text
/// s = Σ g x      loss = s − sg(s) + value      ∂loss/∂x = g
/// ```
///
/// Where g is 0, x is not read: it may be NaN.
///
/// # Errors
///
/// [`Error::Shape`] and [`Error::DType`] if the tensors do not have one shape and type.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
///
/// let device = Device::flex().autodiff();
/// let x = Tensor::<1>::from_floats([1.0, f32::NAN], &device).require_grad();
/// let loss = tokenwise_burn::surrogate(&x, Tensor::from_floats([0.5, 0.0], &device), 7.0)?;
/// assert_eq!(loss.try_to_vec_as::<f32>()?, [7.0]);
/// let gradient = x.grad(&loss.backward()).map(|gradient| gradient.try_to_vec_as::<f32>());
/// assert_eq!(gradient.transpose()?, Some(vec![0.5, 0.0]));
/// # Ok::<(), tokenwise_burn::Error>(())
/// ```
pub fn surrogate<const D: usize>(input: &Tensor<D>, gradient: Tensor<D>, value: f64) -> Result<Tensor<1>> {
    if input.dims() != gradient.dims() {
        let expected = format!("{:?}", input.dims());
        return Err(Error::Shape { what: "gradient".to_owned(), expected, got: gradient.dims().to_vec() });
    }
    if input.dtype() != gradient.dtype() {
        return Err(Error::DType { input: "gradient", expected: "the type of the input", got: gradient.dtype() });
    }
    let gradient = gradient.detach();
    // 0 · NaN is NaN
    let read = input.clone().mask_fill(gradient.clone().equal_scalar(0.0), 0.0);
    let sum = (read * gradient).sum();
    Ok(sum.clone() - sum.detach() + value)
}
