//! Inputs by name, and their way into the columns of a formula.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor, WithDType};
use tokenwise_catalogue::{Array, Column, Columns, Element, Entry, Kind, Number};

use crate::{
    read::{computed, flags, whole, Numbers},
    Error, Result,
};

/// One input: a tensor, or what is no tensor.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// Numbers, ids, counts or flags.
    Tensor(&'a Tensor),
    /// Ids, lengths.
    Indices(&'a [u32]),
    /// Counts.
    Counts(&'a [u64]),
    /// Yes or no.
    Flags(&'a [bool]),
    /// A size. That of the vocabulary and `k` are taken from the last dimension of a tensor if they are not given.
    Size(usize),
    /// A single number.
    Number(f64),
    /// The name of a choice.
    Text(&'a str),
}

impl Input<'_> {
    const fn words(self) -> &'static str {
        match self {
            Self::Tensor(_) => "a tensor",
            Self::Indices(_) => "u32 numbers",
            Self::Counts(_) => "counts",
            Self::Flags(_) => "flags",
            Self::Size(_) => "a size",
            Self::Number(_) => "a number",
            Self::Text(_) => "a name",
        }
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident,)*) => {$(
        impl<'a> From<$from> for Input<'a> {
            fn from(from: $from) -> Self {
                Self::$variant(from)
            }
        }
    )*};
}
from! {
    &'a Tensor => Tensor,
    &'a [u32] => Indices,
    &'a [u64] => Counts,
    &'a [bool] => Flags,
    usize => Size,
    f64 => Number,
    &'a str => Text,
}

/// Inputs by the names of the core.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use tokenwise_candle::Inputs;
///
/// let values = Tensor::zeros((2, 3), candle_core::DType::F32, &Device::Cpu)?;
/// let inputs = Inputs::new().with("predictions", &values).with("values", &values).with("returns", &values);
/// # let _ = inputs;
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Inputs<'a>(Vec<(&'a str, Input<'a>)>);

impl<'a> Inputs<'a> {
    /// No inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces an input.
    #[must_use]
    pub fn with(mut self, name: &'a str, input: impl Into<Input<'a>>) -> Self {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, input.into()));
        self
    }

    /// Adds an input if there is one.
    #[must_use]
    pub fn with_some(self, name: &'a str, input: Option<impl Into<Input<'a>>>) -> Self {
        match input {
            Some(input) => self.with(name, input),
            None => self,
        }
    }
}

/// The mask of a batch from a tensor: a slot is kept where the tensor is not 0.
pub fn kept(mask: &Tensor) -> Result<Vec<bool>> {
    flags("mask", mask)
}

/// The tensors and other inputs of one call, in the order of the formula's columns.
pub(crate) struct Named<'a> {
    tensors: Vec<(&'static Column, &'a Tensor, Tensor)>,
    others: Vec<(&'static Column, Input<'a>)>,
}

impl<'a> Named<'a> {
    pub(crate) fn new(entry: &'static Entry, inputs: &Inputs<'a>) -> Result<Self> {
        let mut given: HashMap<&str, Input<'a>> = inputs.0.iter().copied().collect();
        let mut named = Self { tensors: Vec::new(), others: Vec::new() };
        for column in entry.inputs {
            match (given.remove(column.name), column.element) {
                (Some(Input::Tensor(tensor)), Element::Real) => {
                    named.tensors.push((column, tensor, computed(column.name, tensor)?));
                }
                (Some(input), _) => named.others.push((column, input)),
                (None, _) => (),
            }
        }
        match inputs.0.iter().find(|(name, _)| given.contains_key(name)) {
            Some((name, _)) => Err(Error::Input { formula: entry.name, name: (*name).to_owned() }),
            None => Ok(named),
        }
    }

    /// The tensor that was given for a column.
    pub(crate) fn original(&self, name: &str) -> Option<&'a Tensor> {
        self.tensors.iter().find(|(column, ..)| column.name == name).map(|(_, tensor, _)| *tensor)
    }

    /// The type of the call: that of its first tensor of numbers.
    pub(crate) fn dtype(&self) -> DType {
        self.tensors.first().map_or(DType::F32, |(_, _, tensor)| tensor.dtype())
    }

    /// The device of the first tensor.
    pub(crate) fn device(&self) -> Device {
        let other = self.others.iter().find_map(|(_, input)| match input {
            Input::Tensor(tensor) => Some(tensor.device()),
            _ => None,
        });
        self.tensors.first().map(|(_, tensor, _)| tensor.device()).or(other).cloned().unwrap_or(Device::Cpu)
    }

    fn dims(&self, wanted: impl Fn(Kind) -> bool) -> Option<&[usize]> {
        let others = self.others.iter().filter_map(|(column, input)| match input {
            Input::Tensor(tensor) => Some((column.kind, tensor.dims())),
            _ => None,
        });
        let tensors = self.tensors.iter().map(|(column, tensor, _)| (column.kind, tensor.dims()));
        tensors.chain(others).find(|(kind, _)| wanted(*kind)).map(|(_, dims)| dims)
    }

    /// The shape of an output with `len` entries: that of an input of the same kind, otherwise flat.
    pub(crate) fn shape(&self, kind: Kind, len: usize) -> Vec<usize> {
        let rows = || self.dims(|kind| matches!(kind, Kind::Logit | Kind::TopK)).and_then(<[usize]>::split_last);
        let dims = match kind {
            Kind::Token => self.dims(|other| other == kind).or_else(|| rows().map(|(_, rows)| rows)),
            _ => self.dims(|other| other == kind),
        };
        let fits = |dims: &&[usize]| dims.iter().try_fold(1_usize, |n, &dim| n.checked_mul(dim)) == Some(len);
        dims.filter(fits).map_or_else(|| vec![len], <[usize]>::to_vec)
    }

    /// The inputs that are copied, and the slices that are read where they are.
    pub(crate) fn columns<R: Number + WithDType>(&self, entry: &Entry) -> Result<(Columns<R>, Read<'_, R>)> {
        let (mut columns, mut slices) = (Columns::new(), Vec::new());
        for (column, original, tensor) in &self.tensors {
            if tensor.dtype() != R::DTYPE {
                let (expected, got) = (R::DTYPE.as_str().into(), original.dtype());
                return Err(Error::DType { input: column.name, expected, got });
            }
            match column.kind {
                Kind::Token | Kind::Logit | Kind::TopK => slices.push((column.name, Numbers::of(tensor)?)),
                _ => columns.set(column.name, Array::Real(Numbers::<R>::of(tensor)?.slice()?.to_vec())),
            }
        }
        for (column, input) in &self.others {
            columns.set(column.name, array(column, *input)?);
        }
        for column in entry.inputs.iter().filter(|column| column.element == Element::Size && !column.optional) {
            let rows = match column.name {
                "vocab" => self.dims(|kind| kind == Kind::Logit),
                "k" => self.dims(|kind| kind == Kind::TopK),
                _ => None,
            };
            if let (None, Some(last)) = (columns.get(column.name), rows.and_then(<[usize]>::last)) {
                columns.set(column.name, *last);
            }
        }
        Ok((columns, slices))
    }
}

/// Slices by name.
pub(crate) type Read<'a, R> = Vec<(&'static str, Numbers<'a, R>)>;

fn array<R>(column: &Column, input: Input<'_>) -> Result<Array<R>> {
    let name = column.name;
    Ok(match (column.element, input) {
        (Element::Double, Input::Tensor(tensor)) => {
            Array::Double(computed(name, tensor)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?)
        }
        (Element::Index, Input::Tensor(tensor)) => Array::Index(whole(name, tensor)?),
        (Element::Index, Input::Indices(indices)) => Array::Index(indices.to_vec()),
        (Element::Count, Input::Tensor(tensor)) => Array::Count(whole(name, tensor)?),
        (Element::Count, Input::Counts(counts)) => Array::Count(counts.to_vec()),
        (Element::Flag, Input::Tensor(tensor)) => Array::Flag(flags(name, tensor)?),
        (Element::Flag, Input::Flags(flags)) => Array::Flag(flags.to_vec()),
        (Element::Size, Input::Size(size)) => Array::Size(size),
        (Element::Number, Input::Number(number)) => Array::Number(number),
        (Element::Text, Input::Text(text)) => Array::Text(text.to_owned()),
        (expected, other) => return Err(Error::Kind { input: name, expected, got: other.words() }),
    })
}
