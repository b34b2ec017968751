//! Any formula by its name.

use std::borrow::Cow;

use burn::tensor::{Bool, DType, Device, Element, Int, Tensor, TensorData};
use serde::Serialize;
use tokenwise_catalogue::{find, Array, Call, Domain, Entry, Number, Value};

use crate::{
    inputs::{Inputs, Named},
    Error, Result,
};

/// An output: a flat tensor.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    Numbers(Tensor<1>),
    Ints(Tensor<1, Int>),
    Bools(Tensor<1, Bool>),
}

/// What a formula returned: tensors and numbers by the names of the core.
#[derive(Clone, Debug, Default)]
pub struct Results {
    pub(crate) outputs: Vec<(&'static str, Output, Vec<usize>)>,
    pub(crate) numbers: Vec<(Cow<'static, str>, f64)>,
    /// Of a call on the device.
    #[cfg(feature = "wgpu")]
    pub(crate) report: Option<tokenwise_gpu::Report>,
}

/// The sizes of an output as an array, if it has `D` dimensions.
fn sizes<const D: usize>(name: &str, dims: &[usize]) -> Result<[usize; D]> {
    let wrong = |_| Error::Shape { what: name.to_owned(), expected: format!("{D} dimensions"), got: dims.to_vec() };
    dims.try_into().map_err(wrong)
}

impl Results {
    fn output(&self, name: &str) -> Result<(&Output, &[usize])> {
        let found = self.outputs.iter().find(|(known, ..)| *known == name);
        found.map(|(_, output, dims)| (output, dims.as_slice())).ok_or_else(|| Error::Output { name: name.to_owned() })
    }

    /// An output of numbers, in the shape of the inputs.
    ///
    /// # Errors
    ///
    /// [`Error::Output`] if there is none of this name, [`Error::Shape`] if it does not have `D` dimensions.
    pub fn tensor<const D: usize>(&self, name: &str) -> Result<Tensor<D>> {
        match self.output(name)? {
            (Output::Numbers(tensor), dims) => Ok(tensor.clone().reshape(sizes::<D>(name, dims)?)),
            _ => Err(Error::Output { name: name.to_owned() }),
        }
    }

    /// An output of ids or counts.
    ///
    /// # Errors
    ///
    /// As [`Self::tensor`].
    pub fn ints<const D: usize>(&self, name: &str) -> Result<Tensor<D, Int>> {
        match self.output(name)? {
            (Output::Ints(tensor), dims) => Ok(tensor.clone().reshape(sizes::<D>(name, dims)?)),
            _ => Err(Error::Output { name: name.to_owned() }),
        }
    }

    /// An output of flags, such as a mask.
    ///
    /// # Errors
    ///
    /// As [`Self::tensor`].
    pub fn bools<const D: usize>(&self, name: &str) -> Result<Tensor<D, Bool>> {
        match self.output(name)? {
            (Output::Bools(tensor), dims) => Ok(tensor.clone().reshape(sizes::<D>(name, dims)?)),
            _ => Err(Error::Output { name: name.to_owned() }),
        }
    }

    /// A number.
    ///
    /// # Errors
    ///
    /// [`Error::Output`] if there is none of this name.
    pub fn number(&self, name: &str) -> Result<f64> {
        let found = self.numbers.iter().find(|(known, _)| known == name);
        found.map(|(_, number)| *number).ok_or_else(|| Error::Output { name: name.to_owned() })
    }

    /// All numbers, as a trainer logs them.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, f64)> {
        self.numbers.iter().map(|(name, number)| (name.as_ref(), *number))
    }

    /// Who computed a call of [`OnDevice`](crate::wgpu::OnDevice), and at what cost; `None` for one of the host.
    #[cfg(feature = "wgpu")]
    pub const fn report(&self) -> Option<&tokenwise_gpu::Report> {
        self.report.as_ref()
    }

    /// Takes a flat output of numbers out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Tensor<1>> {
        let place = self.outputs.iter().position(|(known, ..)| *known == name)?;
        match self.outputs.remove(place).1 {
            Output::Numbers(tensor) => Some(tensor),
            _ => None,
        }
    }
}

/// Computes a formula by its name; the results have no gradient.
///
/// Inputs, outputs and numbers have the names of the core's structs. The config is a config of the core,
/// `serde_json::json!`, or `&()` for the default. Outputs are on the device of the first tensor, in the shape of an
/// input of the same kind.
///
/// # Errors
///
/// Those of the formula, and [`Error`] for inputs that do not fit it.
///
/// # Example
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use tokenwise::{advantage::GaeConfig, Batch, Layout, Mask};
/// use tokenwise_burn::{call, Inputs};
///
/// let (batch, device) = (Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?, Device::flex());
/// let rewards = Tensor::<2>::from_floats([[0.0, f32::NAN, 1.0]], &device);
/// let values = Tensor::<2>::from_floats([[0.5, f32::NAN, 0.5]], &device);
/// let bootstrap = Tensor::<1>::zeros([1], &device);
/// let inputs = Inputs::new().with("rewards", &rewards).with("values", &values).with("bootstrap", &bootstrap);
/// let results = call("gae", &batch, &inputs, &GaeConfig { lambda: 0.5, ..Default::default() })?;
/// assert_eq!(results.tensor::<2>("advantages")?.try_to_vec_as::<f32>()?, [0.25, 0.0, 0.5]);
///
/// let inputs = Inputs::new().with("values", &values);
/// assert_eq!(call("mean", &batch, &inputs, &())?.number("mean")?, 0.5);
/// # Ok::<(), tokenwise_burn::Error>(())
/// ```
pub fn call<'a>(
    name: &str,
    domain: impl Into<Domain<'a>>,
    inputs: &Inputs<'_>,
    config: &(impl Serialize + ?Sized),
) -> Result<Results> {
    let entry = entry(name)?;
    run(entry, domain.into(), &Named::new(entry, inputs)?, &Value::of(config)?)
}

pub(crate) fn entry(name: &str) -> Result<&'static Entry> {
    find(name).ok_or_else(|| Error::Formula { name: name.to_owned() })
}

/// Computes in the type of the inputs.
pub(crate) fn run(entry: &'static Entry, domain: Domain<'_>, named: &Named<'_, '_>, config: &Value) -> Result<Results> {
    match named.dtype() {
        DType::F64 => run_as::<f64>(entry, domain, named, config),
        _ => run_as::<f32>(entry, domain, named, config),
    }
}

fn run_as<R: Number + Element>(
    entry: &'static Entry,
    domain: Domain<'_>,
    named: &Named<'_, '_>,
    config: &Value,
) -> Result<Results> {
    let columns = named.columns::<R>()?;
    let mut outputs = entry.outputs_for(domain.batch.as_ref(), domain.groups.as_ref(), &columns);
    if let ("shift", Some(batch), Ok(width)) = (entry.name, &domain.batch, columns.size("width")) {
        // a list whose length only this formula knows
        outputs.set("out", Array::Real(vec![R::narrow(0.0); batch.tokens().saturating_mul(width)]));
    }
    let mut call = Call::new(domain.batch, domain.groups, &columns, config, &mut outputs);
    entry.call(&mut call)?;
    let numbers = call.numbers;

    let device = named.device();
    let mut results = Results { numbers, ..Default::default() };
    for ((name, array), column) in outputs.into_iter().zip(entry.outputs) {
        let dims = named.shape(column.kind, array.len());
        let output = match array {
            Array::Real(numbers) => Output::Numbers(numbers_on(numbers, &device)),
            Array::Double(numbers) => Output::Numbers(numbers_on(numbers, &device)),
            Array::Index(indices) => Output::Ints(ints_on(indices.into_iter().map(i64::from).collect(), &device)),
            Array::Count(counts) => {
                let counts = counts.into_iter().map(|count| i64::try_from(count).unwrap_or(i64::MAX));
                Output::Ints(ints_on(counts.collect(), &device))
            }
            Array::Flag(flags) => {
                let len = flags.len();
                Output::Bools(Tensor::from_data(TensorData::new(flags, [len]), &device))
            }
            _ => continue,
        };
        results.outputs.push((name, output, dims));
    }
    Ok(results)
}

fn numbers_on<R: Element>(numbers: Vec<R>, device: &Device) -> Tensor<1> {
    let len = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [len]), (device, R::dtype()))
}

fn ints_on(numbers: Vec<i64>, device: &Device) -> Tensor<1, Int> {
    let len = numbers.len();
    Tensor::from_data(TensorData::new(numbers, [len]), device)
}
