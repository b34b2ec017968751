//! Inputs by name, and their way into the columns of a formula.

use burn::tensor::{Bool, DType, Device, Element as Number, Int, Tensor};
use tokenwise_catalogue::{Array, Column, Columns, Element, Entry, Kind};

use crate::{Error, Result};

/// One input: a tensor, or what is no tensor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// Numbers, flattened, and the shape they had.
    Numbers(Tensor<1>, Vec<usize>),
    /// Ids, lengths or counts, flattened, and the shape they had.
    Ints(Tensor<1, Int>, Vec<usize>),
    /// Yes or no, flattened, and the shape they had.
    Bools(Tensor<1, Bool>, Vec<usize>),
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
    const fn words(&self) -> &'static str {
        match self {
            Self::Numbers(..) => "a tensor of numbers",
            Self::Ints(..) => "a tensor of whole numbers",
            Self::Bools(..) => "a tensor of flags",
            Self::Indices(_) => "u32 numbers",
            Self::Counts(_) => "counts",
            Self::Flags(_) => "flags",
            Self::Size(_) => "a size",
            Self::Number(_) => "a number",
            Self::Text(_) => "a name",
        }
    }

    /// Whether it is a tensor without entries, which has no buffer.
    #[cfg(feature = "wgpu")]
    pub(crate) fn is_empty(&self) -> bool {
        self.dims().is_some_and(|dims| dims.contains(&0))
    }

    /// The shape of a tensor.
    fn dims(&self) -> Option<&[usize]> {
        match self {
            Self::Numbers(_, dims) | Self::Ints(_, dims) | Self::Bools(_, dims) => Some(dims),
            _ => None,
        }
    }
}

macro_rules! tensors {
    ($($kind:ty => $variant:ident,)*) => {$(
        impl<const D: usize> From<&Tensor<D, $kind>> for Input<'_> {
            fn from(tensor: &Tensor<D, $kind>) -> Self {
                let len = tensor.shape().num_elements();
                Self::$variant(tensor.clone().reshape([len]), tensor.dims().to_vec())
            }
        }
    )*};
}
tensors! {
    burn::tensor::Float => Numbers,
    Int => Ints,
    Bool => Bools,
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
    &'a [u32] => Indices,
    &'a [u64] => Counts,
    &'a [bool] => Flags,
    usize => Size,
    f64 => Number,
    &'a str => Text,
}

/// Inputs by the names of the core.
#[derive(Clone, Debug, Default)]
pub struct Inputs<'a>(Vec<(&'a str, Input<'a>)>);

impl<'a> Inputs<'a> {
    /// No inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces an input. Tensors are given by reference; their clones share the numbers and the gradient.
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

    fn find(&self, name: &str) -> Option<&Input<'a>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, input)| input)
    }
}

/// The mask of a batch from a tensor.
pub fn kept<const D: usize>(mask: &Tensor<D, Bool>) -> Result<Vec<bool>> {
    Ok(mask.try_to_vec_as::<bool>()?)
}

/// The inputs of one call.
pub(crate) struct Named<'a, 'b> {
    entry: &'static Entry,
    inputs: &'b Inputs<'a>,
}

impl<'a, 'b> Named<'a, 'b> {
    pub(crate) fn new(entry: &'static Entry, inputs: &'b Inputs<'a>) -> Result<Self> {
        let known = |name: &str| entry.inputs.iter().any(|column| column.name == name);
        match inputs.0.iter().find(|(name, _)| !known(name)) {
            Some((name, _)) => Err(Error::Input { formula: entry.name, name: (*name).to_owned() }),
            None => Ok(Self { entry, inputs }),
        }
    }

    pub(crate) fn given(&self) -> impl Iterator<Item = (&'static Column, &'b Input<'a>)> + '_ {
        self.entry.inputs.iter().filter_map(|column| Some((column, self.inputs.find(column.name)?)))
    }

    /// The flattened tensor that was given for a column of numbers.
    pub(crate) fn tensor(&self, name: &str) -> Option<&Tensor<1>> {
        match self.inputs.find(name)? {
            Input::Numbers(tensor, _) => Some(tensor),
            _ => None,
        }
    }

    /// The type of the call, f64 or f32: that of its first tensor of numbers.
    pub(crate) fn dtype(&self) -> DType {
        let first = self.given().find_map(|(column, input)| match input {
            Input::Numbers(tensor, _) if column.element == Element::Real => Some(computed(tensor.dtype())),
            _ => None,
        });
        first.unwrap_or(DType::F32)
    }

    /// The device of the first tensor.
    pub(crate) fn device(&self) -> Device {
        let device = |(_, input): (_, &Input<'_>)| match input {
            Input::Numbers(tensor, _) => Some(tensor.device()),
            Input::Ints(tensor, _) => Some(tensor.device()),
            Input::Bools(tensor, _) => Some(tensor.device()),
            _ => None,
        };
        self.given().find_map(device).unwrap_or_default()
    }

    fn dims(&self, wanted: impl Fn(Kind) -> bool) -> Option<&'b [usize]> {
        self.given().find_map(|(column, input)| input.dims().filter(|_| wanted(column.kind)))
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

    /// The inputs on the host.
    pub(crate) fn columns<R: tokenwise_catalogue::Number + Number>(&self) -> Result<Columns<R>> {
        self.columns_but(|_| false)
    }

    /// The inputs on the host, but for those that are left where they are.
    pub(crate) fn columns_but<R: tokenwise_catalogue::Number + Number>(
        &self,
        left: impl Fn(&str) -> bool,
    ) -> Result<Columns<R>> {
        let mut columns = Columns::new();
        for (column, input) in self.given().filter(|(column, _)| !left(column.name)) {
            columns.set(column.name, array(column, input)?);
        }
        for column in self.entry.inputs.iter().filter(|column| column.element == Element::Size && !column.optional) {
            let rows = match column.name {
                "vocab" => self.dims(|kind| kind == Kind::Logit),
                "k" => self.dims(|kind| kind == Kind::TopK),
                _ => None,
            };
            if let (None, Some(last)) = (columns.get(column.name), rows.and_then(<[usize]>::last)) {
                columns.set(column.name, *last);
            }
        }
        Ok(columns)
    }
}

/// f64, or f32 for everything that is narrower.
pub(crate) fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 {
        DType::F64
    } else {
        DType::F32
    }
}

/// Numbers of one type: a tensor of the other one is refused rather than rounded.
pub(crate) fn read<R: Number>(input: &'static str, tensor: &Tensor<1>) -> Result<Vec<R>> {
    if computed(tensor.dtype()) != R::dtype() {
        let expected = if R::dtype() == DType::F64 { "f64" } else { "f32, f16 or bf16" };
        return Err(Error::DType { input, expected, got: tensor.dtype() });
    }
    Ok(tensor.try_to_vec_as::<R>()?)
}

fn whole<T: TryFrom<i64>>(input: &'static str, tensor: &Tensor<1, Int>) -> Result<Vec<T>> {
    let numbers = tensor.try_to_vec_as::<i64>()?;
    let convert = |(index, got)| T::try_from(got).map_err(|_| Error::Entry { input, index, got });
    numbers.into_iter().enumerate().map(convert).collect()
}

fn array<R: Number>(column: &Column, input: &Input<'_>) -> Result<Array<R>> {
    let name = column.name;
    Ok(match (column.element, input) {
        (Element::Real, Input::Numbers(tensor, _)) => Array::Real(read(name, tensor)?),
        (Element::Double, Input::Numbers(tensor, _)) => Array::Double(tensor.try_to_vec_as::<f64>()?),
        (Element::Index, Input::Ints(tensor, _)) => Array::Index(whole(name, tensor)?),
        (Element::Index, Input::Indices(indices)) => Array::Index(indices.to_vec()),
        (Element::Count, Input::Ints(tensor, _)) => Array::Count(whole(name, tensor)?),
        (Element::Count, Input::Counts(counts)) => Array::Count(counts.to_vec()),
        (Element::Flag, Input::Bools(tensor, _)) => Array::Flag(kept(tensor)?),
        (Element::Flag, Input::Flags(flags)) => Array::Flag(flags.to_vec()),
        (Element::Size, Input::Size(size)) => Array::Size(*size),
        (Element::Number, Input::Number(number)) => Array::Number(*number),
        (Element::Text, Input::Text(text)) => Array::Text((*text).to_owned()),
        (expected, other) => return Err(Error::Kind { input: name, expected, got: other.words() }),
    })
}
