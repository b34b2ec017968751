//! Any formula by its name.

use std::borrow::Cow;

use candle_core::{DType, Tensor, WithDType};
use serde::Serialize;
use tokenwise_catalogue::{find, Array, Call, Domain, Entry, Number, Value};

use crate::{
    inputs::{Inputs, Named},
    Error, Result,
};

/// What a formula returned: tensors and numbers by the names of the core.
#[derive(Clone, Debug, Default)]
pub struct Results {
    tensors: Vec<(&'static str, Tensor)>,
    numbers: Vec<(Cow<'static, str>, f64)>,
}

impl Results {
    /// An output.
    ///
    /// # Errors
    ///
    /// [`Error::Output`] if there is none of this name.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        let found = self.tensors.iter().find(|(known, _)| *known == name);
        found.map(|(_, tensor)| tensor).ok_or_else(|| Error::Output { name: name.to_owned() })
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

    /// All outputs, in the order of the core.
    pub fn tensors(&self) -> impl Iterator<Item = (&'static str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (*name, tensor))
    }

    /// All numbers, as a trainer logs them.
    pub fn numbers(&self) -> impl Iterator<Item = (&str, f64)> {
        self.numbers.iter().map(|(name, number)| (name.as_ref(), *number))
    }

    /// Takes an output out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Tensor> {
        let place = self.tensors.iter().position(|(known, _)| *known == name)?;
        Some(self.tensors.remove(place).1)
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
/// use candle_core::{Device, Tensor};
/// use tokenwise::{advantage::GaeConfig, Batch, Layout, Mask};
/// use tokenwise_candle::{call, Inputs};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let rewards = Tensor::new(&[[0.0, 0.0, f64::NAN, 1.0]], &Device::Cpu)?;
/// let values = Tensor::new(&[[0.5, 0.5, f64::NAN, 0.5]], &Device::Cpu)?;
/// let bootstrap = Tensor::new(&[0.0], &Device::Cpu)?;
/// let inputs = Inputs::new().with("rewards", &rewards).with("values", &values).with("bootstrap", &bootstrap);
/// let results = call("gae", &batch, &inputs, &GaeConfig { lambda: 0.5, ..Default::default() })?;
/// assert_eq!(results.tensor("advantages")?.to_vec2::<f64>()?, [[0.125, 0.25, 0.0, 0.5]]);
///
/// let inputs = Inputs::new().with("values", &values);
/// assert_eq!(call("mean", &batch, &inputs, &())?.number("mean")?, 0.5);
/// # Ok::<(), tokenwise_candle::Error>(())
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
pub(crate) fn run(entry: &'static Entry, domain: Domain<'_>, named: &Named<'_>, config: &Value) -> Result<Results> {
    match named.dtype() {
        DType::F64 => run_as::<f64>(entry, domain, named, config),
        _ => run_as::<f32>(entry, domain, named, config),
    }
}

fn run_as<R: Number + WithDType>(
    entry: &'static Entry,
    domain: Domain<'_>,
    named: &Named<'_>,
    config: &Value,
) -> Result<Results> {
    let (columns, read) = named.columns::<R>(entry)?;
    let mut slices = Vec::with_capacity(read.len());
    for (name, numbers) in &read {
        slices.push((*name, numbers.slice()?));
    }
    let mut outputs = entry.outputs_for(domain.batch.as_ref(), domain.groups.as_ref(), &columns);
    if let ("shift", Some(batch), Ok(width)) = (entry.name, &domain.batch, columns.size("width")) {
        // a list whose length only this formula knows
        outputs.set("out", Array::Real(vec![R::narrow(0.0); batch.tokens().saturating_mul(width)]));
    }
    let mut call = Call::new(domain.batch, domain.groups, &columns, config, &mut outputs).with_slices(&slices);
    entry.call(&mut call)?;
    let numbers = call.numbers;

    let device = named.device();
    let mut tensors = Vec::new();
    for ((name, array), column) in outputs.into_iter().zip(entry.outputs) {
        let shape = named.shape(column.kind, array.len());
        let tensor = match array {
            Array::Real(numbers) => Tensor::from_vec(numbers, shape, &device)?,
            Array::Double(numbers) => Tensor::from_vec(numbers, shape, &device)?,
            Array::Index(indices) => Tensor::from_vec(indices, shape, &device)?,
            Array::Count(counts) => {
                let counts = counts.into_iter().map(|count| i64::try_from(count).unwrap_or(i64::MAX));
                Tensor::from_vec(counts.collect::<Vec<i64>>(), shape, &device)?
            }
            Array::Flag(flags) => Tensor::from_vec(flags.into_iter().map(u8::from).collect(), shape, &device)?,
            _ => continue,
        };
        tensors.push((name, tensor));
    }
    Ok(Results { tensors, numbers })
}
