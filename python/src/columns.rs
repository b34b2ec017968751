//! Some arrays of one call, with one entry per token and of one precision.

use numpy::PyUntypedArrayMethods as _;
use pyo3::prelude::*;

use crate::{
    domain::Tokens,
    error::wrong,
    read::{Given, Precision, Reader, Slice},
};

pub(crate) struct TokenColumns<'py> {
    columns: Vec<(&'static str, Given<'py>)>,
    pub(crate) precision: Precision,
    pub(crate) tokens: Tokens<'py>,
}

impl<'py> TokenColumns<'py> {
    /// Reads the arrays that were given; the batch follows from the mask, or from the shape of the first.
    pub(crate) fn read<'a>(
        reader: &mut Reader<'py>,
        given: impl IntoIterator<Item = (&'static str, Option<&'a Bound<'py, PyAny>>)>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Self>
    where
        'py: 'a,
    {
        let py = reader.py;
        let mut columns = Vec::new();
        for (name, given) in given {
            if let Some(given) = given.filter(|given| !given.is_none()) {
                columns.push((name, reader.reals(name, given, false)?));
            }
        }
        let precision = columns.iter().find_map(|(_, given)| given.precision()).unwrap_or(Precision::Double);
        for (name, given) in &mut columns {
            if given.precision() != Some(precision) {
                let Given::Weak(array) = &*given else {
                    return Err(wrong(py, "dtype", name, precision.name(), "the other precision"));
                };
                *given = match precision {
                    Precision::Single => Given::Single(reader.cast(name, array, precision)?),
                    Precision::Double => Given::Double(reader.cast(name, array, precision)?),
                };
            }
        }
        let shapes = columns.iter().map(|(name, given)| (*name, shape(given)));
        let first = shapes.clone().next();
        let tokens = Tokens::read(reader, mask, cu_seqlens, first)?;
        let dims = tokens.shape.dims()?;
        for (name, shape) in shapes {
            if shape != dims {
                return Err(wrong(py, "shape", name, &format!("shape {dims:?}"), &format!("{shape:?}")));
            }
        }
        Ok(Self { columns, precision, tokens })
    }

    /// A column, if it was given.
    pub(crate) fn optional<R: Slice>(&self, name: &str) -> Option<&[R]> {
        self.columns.iter().find(|(known, _)| *known == name).and_then(|(_, given)| R::slice(given))
    }

    /// A column that must be given.
    pub(crate) fn required<R: Slice>(&self, name: &str) -> &[R] {
        self.optional(name).unwrap_or_default()
    }
}

fn shape(given: &Given<'_>) -> Vec<usize> {
    match given {
        Given::Single(array) => array.shape().to_vec(),
        Given::Double(array) => array.shape().to_vec(),
        Given::Weak(_) => Vec::new(),
    }
}

/// The same statement for `f32` and `f64`: `R` is the precision of the columns.
macro_rules! in_precision {
    ($columns:expr, $body:expr) => {
        match $columns.precision {
            $crate::read::Precision::Single => {
                type R = f32;
                $body
            }
            $crate::read::Precision::Double => {
                type R = f64;
                $body
            }
        }
    };
}
pub(crate) use in_precision;
