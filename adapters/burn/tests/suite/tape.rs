//! burn tensors as the tape of the plain formulas, and the tensors of a case.

use burn::tensor::{DType, Device, Tensor, TensorData};
use tokenwise::{Batch, Groups, Layout, Mask};
use tokenwise_burn::{loss, Domain, Inputs, Loss, Result};
use tokenwise_catalogue::{Column, Element, Kind};

use crate::plain::{self, numbers, Case, Given, Mode, GROUPS, K, KEEP, LEN, SEQUENCES, VOCAB};

pub(crate) fn device() -> Device {
    Device::flex().autodiff()
}

pub(crate) fn tensor(numbers: &[f64], dtype: DType) -> Tensor<1> {
    tensor_on(&device(), numbers, dtype)
}

pub(crate) fn tensor_on(device: &Device, numbers: &[f64], dtype: DType) -> Tensor<1> {
    Tensor::from_data(TensorData::new(numbers.to_vec(), [numbers.len()]), (device, dtype))
}

pub(crate) fn host<const D: usize>(tensor: &Tensor<D>) -> Vec<f64> {
    tensor.try_to_vec_as::<f64>().unwrap()
}

/// A flat tensor.
#[derive(Clone)]
pub(crate) struct Tape(pub(crate) Tensor<1>);

impl plain::Tensor for Tape {
    fn constant(&self, numbers: &[f64]) -> Self {
        Self(tensor(numbers, self.0.dtype()))
    }
    fn len(&self) -> usize {
        self.0.dims()[0]
    }
    fn add(&self, other: &Self) -> Self {
        Self(self.0.clone() + other.0.clone())
    }
    fn sub(&self, other: &Self) -> Self {
        Self(self.0.clone() - other.0.clone())
    }
    fn mul(&self, other: &Self) -> Self {
        Self(self.0.clone() * other.0.clone())
    }
    fn div(&self, other: &Self) -> Self {
        Self(self.0.clone() / other.0.clone())
    }
    fn scale(&self, factor: f64) -> Self {
        Self(self.0.clone() * factor)
    }
    fn plus(&self, number: f64) -> Self {
        Self(self.0.clone() + number)
    }
    fn exp(&self) -> Self {
        Self(self.0.clone().exp())
    }
    fn ln(&self) -> Self {
        Self(self.0.clone().log())
    }
    fn min(&self, other: &Self) -> Self {
        Self(self.0.clone().min_pair(other.0.clone()))
    }
    fn max(&self, other: &Self) -> Self {
        Self(self.0.clone().max_pair(other.0.clone()))
    }
    fn detach(&self) -> Self {
        Self(self.0.clone().detach())
    }
    fn sums(&self, width: usize) -> Self {
        let rows = self.len() / width;
        Self(self.0.clone().reshape([rows, width]).sum_dim(1).reshape([rows]))
    }
    fn repeat(&self, width: usize) -> Self {
        let len = self.len();
        Self(self.0.clone().reshape([len, 1]).repeat_dim(1, width).reshape([len * width]))
    }
    fn numbers(&self) -> Vec<f64> {
        host(&self.0)
    }
}

/// What dropped slots hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dropped {
    Numbers,
    Nan,
}

/// The numbers of a column, with NaN in dropped slots if so wanted.
pub(crate) fn filled(column: &Column, dropped: Dropped) -> Vec<f64> {
    let mut all = numbers(column);
    let width = match column.kind {
        Kind::Token => 1,
        Kind::TopK => K,
        Kind::Logit => VOCAB,
        _ => return all,
    };
    if dropped == Dropped::Nan {
        all.chunks_mut(width).zip(KEEP).filter(|(_, keep)| !keep).for_each(|(slot, _)| slot.fill(f64::NAN));
    }
    all
}

pub(crate) fn with_batch<T>(then: impl FnOnce(&Batch<'_>, &Groups<'_>) -> T) -> T {
    let batch = Batch::new(Layout::padded(SEQUENCES, LEN).unwrap(), Mask::new(&KEEP)).unwrap();
    then(&batch, &Groups::from_ids(&GROUPS).unwrap())
}

/// The result of the framework's own autodiff: the loss and the gradients of the leaves.
pub(crate) fn autodiff(case: &Case<Tape>, dtype: DType) -> (f64, Vec<Vec<f64>>) {
    let leaf = |column: &&'static Column| (column.name, tensor(&numbers(column), dtype).require_grad());
    let leaves: Vec<(&'static str, Tensor<1>)> = case.leaves().iter().map(leaf).collect();
    let tapes = leaves.iter().map(|(name, leaf)| (*name, Tape(leaf.clone()))).collect();
    let loss = (case.plain)(&Given { case, leaves: tapes }).0;
    let value = host(&loss)[0];
    let gradients = loss.backward();
    let flat = |(_, leaf): &(_, Tensor<1>)| {
        leaf.grad(&gradients).map_or_else(|| vec![0.0; leaf.dims()[0]], |gradient| host(&gradient))
    };
    (value, leaves.iter().map(flat).collect())
}

/// A call of the adapter: the loss and the gradients of the leaves.
pub(crate) fn adapted(case: &Case<Tape>, dtype: DType, dropped: Dropped) -> Result<(Loss, Vec<Vec<f64>>)> {
    adapted_on(&device(), case, dtype, dropped, |domain, inputs| loss(case.name, domain, inputs, &case.config))
}

/// The same with tensors of another device and another way to compute the loss.
pub(crate) fn adapted_on(
    device: &Device,
    case: &Case<Tape>,
    dtype: DType,
    dropped: Dropped,
    loss: impl FnOnce(Domain<'_>, &Inputs<'_>) -> Result<Loss>,
) -> Result<(Loss, Vec<Vec<f64>>)> {
    let leaves = case.leaves();
    let (selected, counts) = (plain::selected(), Mode::group_tokens());
    let (mut vars, mut inputs) = (Vec::new(), Inputs::new().with_some("weight", case.weight));
    for column in case.columns() {
        inputs = match column.element {
            Element::Flag => inputs.with(column.name, &selected[..]),
            Element::Count => inputs.with(column.name, &counts[..]),
            _ => {
                let flat = tensor_on(device, &filled(column, dropped), dtype);
                let is_leaf = leaves.iter().any(|leaf| leaf.name == column.name);
                let flat = if is_leaf { flat.require_grad() } else { flat };
                if is_leaf {
                    vars.push((column.name, flat.clone()));
                }
                match column.kind {
                    Kind::Token => inputs.with(column.name, &flat.reshape([SEQUENCES, LEN])),
                    Kind::TopK => inputs.with(column.name, &flat.reshape([SEQUENCES, LEN, K])),
                    Kind::Logit => inputs.with(column.name, &flat.reshape([SEQUENCES, LEN, VOCAB])),
                    _ => inputs.with(column.name, &flat),
                }
            }
        };
    }
    let loss = with_batch(|batch, groups| loss((batch, groups).into(), &inputs))?;
    let gradients = loss.backward()?;
    let of = |column: &&Column| {
        let (_, var) = vars.iter().find(|(name, _)| *name == column.name).unwrap();
        var.grad(&gradients).map_or_else(|| vec![0.0; var.dims()[0]], |gradient| host(&gradient))
    };
    let gradients = leaves.iter().map(of).collect();
    Ok((loss, gradients))
}

/// Fails unless the numbers agree within a part of the largest expected one.
pub(crate) fn assert_near(what: &str, expected: &[f64], got: &[f64], tolerance: f64) {
    assert_eq!(expected.len(), got.len(), "{what}");
    let largest = expected.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    for (index, (a, b)) in expected.iter().zip(got).enumerate() {
        let off = (a - b).abs();
        assert!(off <= tolerance * largest, "{what}[{index}]: expected {a}, got {b}, off by {:e}", off / largest);
    }
}
