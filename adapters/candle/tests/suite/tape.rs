//! candle tensors as the tape of the plain formulas, and the tensors of a case.

use candle_core::{DType, Device, Tensor, Var};
use tokenwise::{Batch, Groups, Layout, Mask};
use tokenwise_candle::{loss, Inputs, Loss, Result};
use tokenwise_catalogue::{Column, Element, Kind};

use crate::plain::{self, numbers, Case, Given, Mode, GROUPS, K, KEEP, LEN, SEQUENCES, VOCAB};

/// A flat tensor.
#[derive(Clone)]
pub(crate) struct Tape(pub(crate) Tensor);

impl plain::Tensor for Tape {
    fn constant(&self, numbers: &[f64]) -> Self {
        Self(Tensor::new(numbers, &Device::Cpu).unwrap().to_dtype(self.0.dtype()).unwrap())
    }
    fn len(&self) -> usize {
        self.0.elem_count()
    }
    fn add(&self, other: &Self) -> Self {
        Self((&self.0 + &other.0).unwrap())
    }
    fn sub(&self, other: &Self) -> Self {
        Self((&self.0 - &other.0).unwrap())
    }
    fn mul(&self, other: &Self) -> Self {
        Self((&self.0 * &other.0).unwrap())
    }
    fn div(&self, other: &Self) -> Self {
        Self((&self.0 / &other.0).unwrap())
    }
    fn scale(&self, factor: f64) -> Self {
        Self((&self.0 * factor).unwrap())
    }
    fn plus(&self, number: f64) -> Self {
        Self((&self.0 + number).unwrap())
    }
    fn exp(&self) -> Self {
        Self(self.0.exp().unwrap())
    }
    fn ln(&self) -> Self {
        Self(self.0.log().unwrap())
    }
    fn min(&self, other: &Self) -> Self {
        Self(self.0.minimum(&other.0).unwrap())
    }
    fn max(&self, other: &Self) -> Self {
        Self(self.0.maximum(&other.0).unwrap())
    }
    fn detach(&self) -> Self {
        Self(self.0.detach())
    }
    fn sums(&self, width: usize) -> Self {
        Self(self.0.reshape((self.len() / width, width)).unwrap().sum(1).unwrap())
    }
    fn repeat(&self, width: usize) -> Self {
        let rows = self.0.unsqueeze(1).unwrap().broadcast_as((self.len(), width)).unwrap();
        Self(rows.reshape(self.len() * width).unwrap())
    }
    fn numbers(&self) -> Vec<f64> {
        self.0.to_dtype(DType::F64).unwrap().to_vec1().unwrap()
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

pub(crate) fn shape(kind: Kind) -> Vec<usize> {
    match kind {
        Kind::Token => vec![SEQUENCES, LEN],
        Kind::TopK => vec![SEQUENCES, LEN, K],
        Kind::Logit => vec![SEQUENCES, LEN, VOCAB],
        _ => vec![SEQUENCES],
    }
}

pub(crate) fn with_batch<T>(then: impl FnOnce(&Batch<'_>, &Groups<'_>) -> T) -> T {
    let batch = Batch::new(Layout::padded(SEQUENCES, LEN).unwrap(), Mask::new(&KEEP)).unwrap();
    then(&batch, &Groups::from_ids(&GROUPS).unwrap())
}

/// The result of the framework's own autodiff: the loss and the gradients of the leaves.
pub(crate) fn autodiff(case: &Case<Tape>, dtype: DType) -> (f64, Vec<Vec<f64>>) {
    let leaf = |column: &Column| {
        let numbers = Tensor::new(numbers(column), &Device::Cpu).unwrap().to_dtype(dtype).unwrap();
        Var::from_tensor(&numbers).unwrap()
    };
    let leaves: Vec<(&'static str, Var)> = case.leaves().iter().map(|column| (column.name, leaf(column))).collect();
    let tapes = leaves.iter().map(|(name, leaf)| (*name, Tape(leaf.as_tensor().clone()))).collect();
    let loss = (case.plain)(&Given { case, leaves: tapes }).0;
    let gradients = loss.backward().unwrap();
    let gradients = leaves.iter().map(|(_, leaf)| flat(gradients.get(leaf), leaf)).collect();
    (loss.to_dtype(DType::F64).unwrap().to_vec1::<f64>().unwrap()[0], gradients)
}

/// A gradient as numbers; zeros if the loss does not depend on the leaf.
pub(crate) fn flat(gradient: Option<&Tensor>, leaf: &Tensor) -> Vec<f64> {
    match gradient {
        Some(gradient) => gradient.flatten_all().unwrap().to_dtype(DType::F64).unwrap().to_vec1().unwrap(),
        None => vec![0.0; leaf.elem_count()],
    }
}

/// A call of the adapter: the loss and the gradients of the leaves. `view` may change the layout of a tensor.
pub(crate) fn adapted(
    case: &Case<Tape>,
    dtype: DType,
    dropped: Dropped,
    view: impl Fn(&Tensor) -> Tensor,
) -> Result<(Loss, Vec<Vec<f64>>)> {
    let leaves = case.leaves();
    let (mut vars, mut tensors) = (Vec::new(), Vec::new());
    for column in case.columns().filter(|column| column.element == Element::Real) {
        let tensor = Tensor::from_vec(filled(column, dropped), shape(column.kind), &Device::Cpu)?.to_dtype(dtype)?;
        if leaves.iter().any(|leaf| leaf.name == column.name) {
            let var = Var::from_tensor(&tensor)?;
            tensors.push((column.name, view(var.as_tensor())));
            vars.push((column.name, var));
        } else {
            tensors.push((column.name, view(&tensor)));
        }
    }
    let (selected, counts) = (plain::selected(), Mode::group_tokens());
    let mut inputs = Inputs::new().with_some("weight", case.weight);
    for (name, tensor) in &tensors {
        inputs = inputs.with(name, tensor);
    }
    for column in case.columns() {
        inputs = match column.element {
            Element::Flag => inputs.with(column.name, &selected[..]),
            Element::Count => inputs.with(column.name, &counts[..]),
            _ => inputs,
        };
    }
    let loss = with_batch(|batch, groups| loss(case.name, (batch, groups), &inputs, &case.config))?;
    let gradients = loss.backward()?;
    let of = |column: &&Column| {
        let (_, var) = vars.iter().find(|(name, _)| *name == column.name).unwrap();
        flat(gradients.get(var), var)
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
