//! Named columns: the inputs and outputs of a call.

use alloc::{string::String, vec, vec::Vec};

use tokenwise::Real;

use crate::Refusal;

/// One input or output.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Array<R> {
    /// Numbers of the call's type.
    Real(Vec<R>),
    /// Numbers that are `f64` regardless of the call's type.
    Double(Vec<f64>),
    /// Token ids, lengths.
    Index(Vec<u32>),
    /// Counts.
    Count(Vec<u64>),
    /// Yes or no.
    Flag(Vec<bool>),
    /// A size, such as that of the vocabulary.
    Size(usize),
    /// A single number.
    Number(f64),
    /// The name of a choice.
    Text(String),
}

/// The type of the entries of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Element {
    /// `f32` or `f64`, the type of the call.
    Real,
    /// `f64`.
    Double,
    /// `u32`.
    Index,
    /// `u64`.
    Count,
    /// `bool`.
    Flag,
    /// A single `usize`.
    Size,
    /// A single `f64`.
    Number,
    /// A single name.
    Text,
}

impl Element {
    /// A description for error messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Real => "numbers",
            Self::Double => "numbers in f64",
            Self::Index => "u32 numbers",
            Self::Count => "counts",
            Self::Flag => "flags",
            Self::Size => "a size",
            Self::Number => "a number",
            Self::Text => "a name",
        }
    }

    /// A column of `len` entries, all zero or false.
    pub fn zeros<R: Real>(self, len: usize) -> Array<R> {
        match self {
            Self::Real => Array::Real(vec![R::narrow(0.0); len]),
            Self::Double => Array::Double(vec![0.0; len]),
            Self::Index => Array::Index(vec![0; len]),
            Self::Count => Array::Count(vec![0; len]),
            Self::Flag => Array::Flag(vec![false; len]),
            Self::Size => Array::Size(len),
            Self::Number => Array::Number(0.0),
            Self::Text => Array::Text(String::new()),
        }
    }
}

impl<R> Array<R> {
    /// The type of its entries.
    pub const fn element(&self) -> Element {
        match self {
            Self::Real(_) => Element::Real,
            Self::Double(_) => Element::Double,
            Self::Index(_) => Element::Index,
            Self::Count(_) => Element::Count,
            Self::Flag(_) => Element::Flag,
            Self::Size(_) => Element::Size,
            Self::Number(_) => Element::Number,
            Self::Text(_) => Element::Text,
        }
    }

    /// Number of entries; 0 for a single value.
    pub fn len(&self) -> usize {
        match self {
            Self::Real(array) => array.len(),
            Self::Double(array) => array.len(),
            Self::Index(array) => array.len(),
            Self::Count(array) => array.len(),
            Self::Flag(array) => array.len(),
            Self::Size(_) | Self::Number(_) | Self::Text(_) => 0,
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! from {
    ($($variant:ident($from:ty),)*) => {$(
        impl<R> From<$from> for Array<R> {
            fn from(from: $from) -> Self {
                Self::$variant(from)
            }
        }
    )*};
}
from! {
    Index(Vec<u32>),
    Count(Vec<u64>),
    Flag(Vec<bool>),
    Size(usize),
}

/// Columns by name, in the order in which they were added.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns<R>(Vec<(&'static str, Array<R>)>);

impl<R> Default for Columns<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R: Real> Columns<R> {
    /// No columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a column.
    pub fn set(&mut self, name: &'static str, array: impl Into<Array<R>>) {
        let array = array.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = array,
            None => self.0.push((name, array)),
        }
    }

    /// Like [`Self::set`], for chaining.
    #[must_use]
    pub fn with(mut self, name: &'static str, array: impl Into<Array<R>>) -> Self {
        self.set(name, array);
        self
    }

    /// The column with this name.
    pub fn get(&self, name: &str) -> Option<&Array<R>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, array)| array)
    }

    /// The column with this name, mutable.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Array<R>> {
        self.0.iter_mut().find(|(known, _)| *known == name).map(|(_, array)| array)
    }

    /// All columns, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Array<R>)> {
        self.0.iter().map(|(name, array)| (*name, array))
    }

    /// All columns, in order, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut Array<R>)> {
        self.0.iter_mut().map(|(name, array)| (*name, array))
    }
}

impl<R> IntoIterator for Columns<R> {
    type Item = (&'static str, Array<R>);
    type IntoIter = vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

macro_rules! readers {
    ($($name:ident $optional:ident $output:ident: $variant:ident, $slice:ty;)*) => {
        impl<R: Real> Columns<R> {$(
            /// A required column of this type.
            pub fn $name(&self, name: &'static str) -> Result<&$slice, Refusal> {
                self.$optional(name)?.ok_or(Refusal::Missing { input: name, element: Element::$variant })
            }

            /// A column of this type that a call may omit.
            pub fn $optional(&self, name: &'static str) -> Result<Option<&$slice>, Refusal> {
                match self.get(name) {
                    None => Ok(None),
                    Some(Array::$variant(array)) => Ok(Some(array)),
                    Some(other) => Err(Refusal::Element {
                        column: name,
                        expected: Element::$variant,
                        got: other.element(),
                    }),
                }
            }

            /// An output of this type.
            pub fn $output(&mut self, name: &'static str) -> Result<&mut $slice, Refusal> {
                match self.get_mut(name) {
                    None => Err(Refusal::Missing { input: name, element: Element::$variant }),
                    Some(Array::$variant(array)) => Ok(array),
                    Some(other) => Err(Refusal::Element {
                        column: name,
                        expected: Element::$variant,
                        got: other.element(),
                    }),
                }
            }
        )*}
    };
}

readers! {
    real optional_real real_mut: Real, [R];
    double optional_double double_mut: Double, [f64];
    index optional_index index_mut: Index, [u32];
    count optional_count count_mut: Count, [u64];
    flag optional_flag flag_mut: Flag, [bool];
}

impl<R: Real> Columns<R> {
    /// A required size.
    pub fn size(&self, name: &'static str) -> Result<usize, Refusal> {
        self.optional_size(name)?.ok_or(Refusal::Missing { input: name, element: Element::Size })
    }

    /// A size that a call may omit.
    pub fn optional_size(&self, name: &'static str) -> Result<Option<usize>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Array::Size(size)) => Ok(Some(*size)),
            Some(other) => Err(Refusal::Element { column: name, expected: Element::Size, got: other.element() }),
        }
    }

    /// A required single number.
    pub fn number(&self, name: &'static str) -> Result<f64, Refusal> {
        self.optional_number(name)?.ok_or(Refusal::Missing { input: name, element: Element::Number })
    }

    /// A single number that a call may omit.
    pub fn optional_number(&self, name: &'static str) -> Result<Option<f64>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Array::Number(number)) => Ok(Some(*number)),
            Some(other) => Err(Refusal::Element { column: name, expected: Element::Number, got: other.element() }),
        }
    }

    /// A name that a call may omit.
    pub fn optional_text(&self, name: &'static str) -> Result<Option<&str>, Refusal> {
        match self.get(name) {
            None => Ok(None),
            Some(Array::Text(text)) => Ok(Some(text)),
            Some(other) => Err(Refusal::Element { column: name, expected: Element::Text, got: other.element() }),
        }
    }

    /// Several outputs at once.
    pub fn reals_mut<const N: usize>(&mut self, names: [&'static str; N]) -> Result<[&mut [R]; N], Refusal> {
        let mut found = names.map(|_| None);
        for (known, array) in &mut self.0 {
            if let (Some(place), Array::Real(array)) = (names.iter().position(|name| name == known), array) {
                found[place] = Some(array.as_mut_slice());
            }
        }
        match names.iter().zip(&found).find(|(_, slice)| slice.is_none()) {
            Some((name, _)) => Err(Refusal::Missing { input: name, element: Element::Real }),
            None => Ok(found.map(Option::unwrap_or_default)),
        }
    }
}
