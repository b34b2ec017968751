//! Arrays of the caller's, read where they are.
//!
//! Contiguous NumPy arrays of the right type are borrowed. Everything else (tensors, lists, other types) is turned into
//! such an array by `tokenwise_rl/_arrays.py`, without a copy where that is possible.

use numpy::{
    Element as NumpyElement, PyArray1, PyArrayDescrMethods as _, PyArrayDyn, PyArrayMethods as _, PyReadonlyArrayDyn,
    PyUntypedArray, PyUntypedArrayMethods as _,
};
use pyo3::{intern, prelude::*, sync::PyOnceLock, types::PyModule};

use crate::{
    dlpack::array_of_tensor,
    error::{described, wrong},
    spare::Float,
};

static HELPERS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// `tokenwise_rl._arrays`.
pub(crate) fn helpers(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = HELPERS.get_or_try_init(py, || Ok::<_, PyErr>(py.import("tokenwise_rl._arrays")?.unbind()))?;
    Ok(module.bind(py))
}

/// Numbers as they were given.
pub(crate) enum Given<'py> {
    Single(PyReadonlyArrayDyn<'py, f32>),
    Double(PyReadonlyArrayDyn<'py, f64>),
    /// Of no precision of its own (a list, whole numbers): takes that of the call.
    Weak(Bound<'py, PyAny>),
}

impl Given<'_> {
    pub(crate) fn precision(&self) -> Option<Precision> {
        match self {
            Self::Single(_) => Some(Precision::Single),
            Self::Double(_) => Some(Precision::Double),
            Self::Weak(_) => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    Single,
    Double,
}

impl Precision {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Single => "float32",
            Self::Double => "float64",
        }
    }
}

/// Remembers whose arrays were given, so that results can be of the same kind.
pub(crate) struct Reader<'py> {
    pub(crate) py: Python<'py>,
    /// The first tensor among the inputs.
    pub(crate) like: Option<Bound<'py, PyAny>>,
}

impl<'py> Reader<'py> {
    pub(crate) fn new(py: Python<'py>) -> Self {
        Self { py, like: None }
    }

    /// An array of NumPy that shares its memory with what was given, if it can.
    fn plain(&mut self, name: &str, given: &Bound<'py, PyAny>, logits: bool) -> PyResult<Bound<'py, PyAny>> {
        if given.is_instance_of::<PyUntypedArray>() {
            return Ok(given.clone());
        }
        let (array, tensor): (Bound<'py, PyAny>, bool) = match array_of_tensor(given)? {
            Some(array) => (array, true),
            None => helpers(self.py)?.getattr(intern!(self.py, "plain"))?.call1((name, given, logits))?.extract()?,
        };
        if tensor && self.like.is_none() {
            self.like = Some(given.clone());
        }
        Ok(array)
    }

    /// Numbers of either precision.
    pub(crate) fn reals(&mut self, name: &str, given: &Bound<'py, PyAny>, logits: bool) -> PyResult<Given<'py>> {
        let array = self.plain(name, given, logits)?;
        if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
            if array.is_c_contiguous() {
                return Ok(Given::Single(borrowed(name, array)?));
            }
        } else if let Ok(array) = array.cast::<PyArrayDyn<f64>>() {
            if array.is_c_contiguous() {
                return Ok(Given::Double(borrowed(name, array)?));
            }
        } else {
            return Ok(Given::Weak(array));
        }
        let copy = helpers(self.py)?.getattr(intern!(self.py, "contiguous"))?.call1((array,))?;
        self.reals(name, &copy, logits)
    }

    /// Numbers in the precision of the call.
    pub(crate) fn cast<R: NumpyElement>(
        &self,
        name: &str,
        given: &Bound<'py, PyAny>,
        precision: Precision,
    ) -> PyResult<PyReadonlyArrayDyn<'py, R>> {
        let helper = helpers(self.py)?.getattr(intern!(self.py, "reals"))?;
        let array = helper.call1((name, given, precision.name()))?;
        borrowed(name, array.cast::<PyArrayDyn<R>>()?)
    }

    /// Booleans, or numbers that are 0 or 1.
    pub(crate) fn flags(&mut self, name: &str, given: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, bool>> {
        let array = self.plain(name, given, false)?;
        if let Ok(array) = array.cast::<PyArrayDyn<bool>>() {
            if array.is_c_contiguous() {
                return borrowed(name, array);
            }
        }
        // in one pass; Python finds the entry that is neither 0 nor 1, and does what is not contiguous
        let array = match zeros_and_ones(&array)? {
            Some(flags) => flags.into_any(),
            None => helpers(self.py)?.getattr(intern!(self.py, "flags"))?.call1((name, array))?,
        };
        borrowed(name, array.cast::<PyArrayDyn<bool>>()?)
    }

    /// Whole numbers from 0 to 2^32 - 1. Entries whose slot is dropped may be anything: padding is often -100.
    pub(crate) fn indices(
        &mut self,
        name: &str,
        given: &Bound<'py, PyAny>,
        mask: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyReadonlyArrayDyn<'py, u32>> {
        let array = self.plain(name, given, false)?;
        if let Ok(array) = array.cast::<PyArrayDyn<u32>>() {
            if array.is_c_contiguous() {
                return borrowed(name, array);
            }
        }
        let array = helpers(self.py)?.getattr(intern!(self.py, "indices"))?.call1((name, array, mask))?;
        borrowed(name, array.cast::<PyArrayDyn<u32>>()?)
    }

    /// Counts.
    pub(crate) fn counts(&mut self, name: &str, given: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, u64>> {
        let array = self.plain(name, given, false)?;
        let array = helpers(self.py)?.getattr(intern!(self.py, "counts"))?.call1((name, array))?;
        borrowed(name, array.cast::<PyArrayDyn<u64>>()?)
    }

    /// Logits in half precision as their bits, and the name of their type.
    pub(crate) fn half_bits(
        &mut self,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(PyReadonlyArrayDyn<'py, u16>, String)>> {
        if given.is_instance_of::<PyUntypedArray>() && !is_half(given)? {
            return Ok(None);
        }
        let found = helpers(self.py)?.getattr(intern!(self.py, "half_bits"))?.call1((given,))?;
        if found.is_none() {
            return Ok(None);
        }
        let (bits, kind, tensor): (Bound<'py, PyAny>, String, bool) = found.extract()?;
        if tensor && self.like.is_none() {
            self.like = Some(given.clone());
        }
        Ok(Some((borrowed("logits", bits.cast::<PyArrayDyn<u16>>()?)?, kind)))
    }
}

/// A mask as an array of booleans; numbers must be 0 or 1.
#[pyfunction]
pub(crate) fn flags<'py>(name: &str, given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArrayDyn<bool>>> {
    Ok((*Reader::new(given.py()).flags(name, given)?).clone())
}

/// Numbers that are 0 or 1 as booleans; `None` if another is among them, or the array is not contiguous.
fn zeros_and_ones<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyArrayDyn<bool>>>> {
    macro_rules! first_of {
        ($($number:ty)*) => {$(
            if let Ok(array) = array.cast::<PyArrayDyn<$number>>() {
                return flags_of(array, 0 as $number, 1 as $number);
            }
        )*};
    }
    // the types that frameworks have masks in
    first_of!(i64 f32 f64 i32 u8 i8);
    Ok(None)
}

/// Numbers that are read twice in a row.
const CHUNK: usize = 2048;

fn flags_of<'py, T: NumpyElement + Copy + PartialEq>(
    array: &Bound<'py, PyArrayDyn<T>>,
    zero: T,
    one: T,
) -> PyResult<Option<Bound<'py, PyArrayDyn<bool>>>> {
    if !array.is_c_contiguous() {
        return Ok(None);
    }
    let given = borrowed("mask", array)?;
    let numbers = given.as_slice()?;
    let mut flags = Vec::with_capacity(numbers.len());
    let mut clean = true;
    // both loops without an early exit, so that they are vector code, over numbers that stay in the cache
    for chunk in numbers.chunks(CHUNK) {
        flags.extend(chunk.iter().map(|number| *number == one));
        clean &= chunk.iter().fold(true, |clean, number| clean & ((*number == zero) | (*number == one)));
    }
    let shape = given.shape();
    Ok(if clean { Some(PyArray1::from_vec(array.py(), flags).reshape(shape)?) } else { None })
}

/// Whether an array of NumPy has entries of two bytes, as f16 and bf16 have.
fn is_half(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(given.cast::<PyUntypedArray>()?.dtype().itemsize() == 2)
}

/// A borrow that lasts for the call; refused while other code of this kind writes to the array.
fn borrowed<'py, T: NumpyElement>(
    name: &str,
    array: &Bound<'py, PyArrayDyn<T>>,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    array.try_readonly().map_err(|_| wrong(array.py(), "borrow", name, "an array that nobody writes to", "one in use"))
}

/// A single whole number.
pub(crate) fn size(name: &str, given: &Bound<'_, PyAny>) -> PyResult<usize> {
    given.extract().map_err(|_| wrong(given.py(), "type", name, "a whole number", &described(given)))
}

/// A single number.
pub(crate) fn number(name: &str, given: &Bound<'_, PyAny>) -> PyResult<f64> {
    given.extract().map_err(|_| wrong(given.py(), "type", name, "a number", &described(given)))
}

/// A string.
pub(crate) fn text(name: &str, given: &Bound<'_, PyAny>) -> PyResult<String> {
    given.extract().map_err(|_| wrong(given.py(), "type", name, "a string", &described(given)))
}

/// `f32` and `f64`, and the arrays of each.
pub(crate) trait Slice: Float {
    fn slice<'a>(given: &'a Given<'_>) -> Option<&'a [Self]>;

    /// Results that were computed in `f32`; of a call in that precision, as they are.
    fn of_single(numbers: Vec<f32>) -> Vec<Self>;
}

impl Slice for f32 {
    fn slice<'a>(given: &'a Given<'_>) -> Option<&'a [Self]> {
        match given {
            Given::Single(array) => array.as_slice().ok(),
            _ => None,
        }
    }

    fn of_single(numbers: Vec<f32>) -> Vec<Self> {
        numbers
    }
}

impl Slice for f64 {
    fn slice<'a>(given: &'a Given<'_>) -> Option<&'a [Self]> {
        match given {
            Given::Double(array) => array.as_slice().ok(),
            _ => None,
        }
    }

    fn of_single(numbers: Vec<f32>) -> Vec<Self> {
        numbers.into_iter().map(f64::from).collect()
    }
}
