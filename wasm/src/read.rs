//! Arguments of JavaScript, checked: numbers, typed arrays, groups, layouts.

use js_sys::{Float32Array, Float64Array, Object, Reflect, Uint32Array, Uint8Array};
use tokenwise::{Error, Groups, Layout};
use tokenwise_catalogue::{ConfigError, Number};
use wasm_bindgen::{prelude::JsValue, JsCast};

use crate::{
    error::{no_memory, wrong_type, Result},
    names::snake_case,
    spare::Spare,
    value::key,
    write::written,
};

pub(crate) const WHOLE_32: &str = "a whole number from 0 to 2^32 - 1";
#[cfg(feature = "full")]
const WHOLE_53: &str = "a whole number from 0 to 2^53 - 1";

/// `f32` and `f64` with their typed arrays.
pub(crate) trait Precision: Number + Spare {
    /// What an argument must be.
    const ARRAY: &'static str;

    /// Whether a value is such an array.
    fn is_array(value: &JsValue) -> bool;

    /// A copy of the array; `None` if it is another one, or none.
    fn read(array: &JsValue) -> Option<Result<Vec<Self>>>;

    /// Copies entries of such an array from an index on.
    fn copy(array: &JsValue, from: usize, into: &mut [Self]);

    /// The numbers in an array of the caller's, or in a fresh one.
    fn write(numbers: &[Self], into: Option<&JsValue>) -> JsValue;
}

/// The entries of a typed array, copied once.
macro_rules! copied {
    ($array:expr, $class:ty) => {
        $array.dyn_ref::<$class>().map(|array| room(array.length() as usize, || array.to_vec()))
    };
}

/// Copies a part of a typed array whose class and length were checked.
macro_rules! part {
    ($class:ty, $array:expr, $from:expr, $into:expr) => {{
        // an index of a typed array of this module fits into 32 bits
        let (from, end) = ($from as u32, ($from + $into.len()) as u32);
        $array.unchecked_ref::<$class>().subarray(from, end).copy_to($into);
    }};
}

impl Precision for f32 {
    const ARRAY: &'static str = "a Float32Array";

    fn is_array(value: &JsValue) -> bool {
        value.has_type::<Float32Array>()
    }

    fn read(array: &JsValue) -> Option<Result<Vec<Self>>> {
        copied!(array, Float32Array)
    }

    fn copy(array: &JsValue, from: usize, into: &mut [Self]) {
        part!(Float32Array, array, from, into);
    }

    fn write(numbers: &[Self], into: Option<&JsValue>) -> JsValue {
        written!(Float32Array, numbers, into)
    }
}

impl Precision for f64 {
    const ARRAY: &'static str = "a Float64Array";

    fn is_array(value: &JsValue) -> bool {
        value.has_type::<Float64Array>()
    }

    fn read(array: &JsValue) -> Option<Result<Vec<Self>>> {
        copied!(array, Float64Array)
    }

    fn copy(array: &JsValue, from: usize, into: &mut [Self]) {
        part!(Float64Array, array, from, into);
    }

    fn write(numbers: &[Self], into: Option<&JsValue>) -> JsValue {
        written!(Float64Array, numbers, into)
    }
}

/// The number of entries of a typed array.
pub(crate) fn array_len(array: &JsValue) -> usize {
    // every typed array has this getter
    array.unchecked_ref::<Uint8Array>().length() as usize
}

/// Makes a list of `len` entries unless there is no room for it: running out of memory would end the module.
fn room<T>(len: usize, make: impl FnOnce() -> Vec<T>) -> Result<Vec<T>> {
    // the room is given back and taken again at once
    match Vec::<T>::new().try_reserve_exact(len) {
        Ok(()) => Ok(make()),
        Err(_) => Err(no_memory(len)),
    }
}

/// Room for an output.
pub(crate) fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    room(len, || vec![T::default(); len])
}

pub(crate) fn reals<R: Precision>(name: &str, given: &JsValue) -> Result<Vec<R>> {
    R::read(given).unwrap_or_else(|| Err(wrong_type(name, R::ARRAY, given)))
}

pub(crate) fn words(name: &str, given: &JsValue) -> Result<Vec<u32>> {
    copied!(given, Uint32Array).unwrap_or_else(|| Err(wrong_type(name, "a Uint32Array", given)))
}

/// Counts arrive in 32 bits: no batch has more tokens.
pub(crate) fn counts(name: &str, given: &JsValue) -> Result<Vec<u64>> {
    Ok(words(name, given)?.into_iter().map(u64::from).collect())
}

/// Bytes of 0 and 1. `what` names them in errors as the core would.
pub(crate) fn flags(what: &'static str, given: &JsValue) -> Result<Vec<bool>> {
    let bytes = copied!(given, Uint8Array).unwrap_or_else(|| Err(wrong_type(what, "a Uint8Array", given)))?;
    // the largest byte first: it is found many at a time
    if bytes.iter().fold(0, |largest, &byte| largest.max(byte)) > 1 {
        let found = bytes.iter().enumerate().find(|(_, &byte)| byte > 1);
        let (index, got) = found.map_or((0, 0.0), |(index, &byte)| (index, byte.into()));
        return Err(Error::Entry { what, index, must_be: "0 or 1", got }.into());
    }
    Ok(bytes.into_iter().map(|byte| byte == 1).collect())
}

pub(crate) fn number(name: &str, given: &JsValue) -> Result<f64> {
    given.as_f64().ok_or_else(|| wrong_type(name, "a number", given))
}

pub(crate) fn text(name: &str, given: &JsValue) -> Result<String> {
    given.as_string().ok_or_else(|| wrong_type(name, "a string", given))
}

fn whole(name: &str, given: &JsValue, below: f64, words: &str) -> Result<f64> {
    let found = given.as_f64().filter(|x| (0.0..below).contains(x) && x.trunc() == *x);
    found.ok_or_else(|| wrong_type(name, words, given))
}

pub(crate) fn size(name: &str, given: &JsValue) -> Result<usize> {
    Ok(whole(name, given, 4_294_967_296.0, WHOLE_32)? as usize)
}

#[cfg(feature = "full")]
pub(crate) fn count(name: &str, given: &JsValue) -> Result<u64> {
    Ok(whole(name, given, 9_007_199_254_740_992.0, WHOLE_53)? as u64)
}

/// Refuses anything but an object.
pub(crate) fn object(name: &str, given: &JsValue) -> Result<()> {
    if given.is_object() {
        Ok(())
    } else {
        Err(wrong_type(name, "an object", given))
    }
}

/// The field of an object, by its name in snake_case.
pub(crate) fn field(of: &JsValue, name: &str) -> Result {
    Ok(Reflect::get(of, &key(name))?)
}

/// Refuses keys that are not among `names`.
pub(crate) fn closed(name: &str, given: &JsValue, names: &[&str]) -> Result<()> {
    object(name, given)?;
    for key in Object::keys(given.unchecked_ref::<Object>()) {
        let key = snake_case(&key.as_string().unwrap_or_default());
        if !names.contains(&key.as_str()) {
            return Err(ConfigError::unknown_key(&key, name, names).into());
        }
    }
    Ok(())
}

/// Which sequences answer the same prompt.
pub(crate) enum OwnGroups {
    Ids(Vec<u32>),
    Sizes(Vec<u32>),
}

impl OwnGroups {
    /// One id per sequence, or the sizes of contiguous groups.
    pub(crate) fn read(name: &str, given: &JsValue) -> Result<Self> {
        object(name, given)?;
        let sizes = field(given, "sizes")?;
        if sizes.is_undefined() {
            closed(name, given, &["ids", "sizes"])?;
            return Ok(Self::Ids(words("ids", &field(given, "ids")?)?));
        }
        closed(name, given, &["sizes"])?;
        Ok(Self::Sizes(words("sizes", &sizes)?))
    }

    pub(crate) fn view(&self) -> Result<Groups<'_>> {
        Ok(match self {
            Self::Ids(ids) => Groups::from_ids(ids)?,
            Self::Sizes(sizes) => Groups::contiguous(sizes)?,
        })
    }
}

/// Where the sequences lie.
pub(crate) enum OwnLayout {
    Padded { batch: usize, len: usize },
    Packed { cu_seqlens: Vec<u32> },
}

impl OwnLayout {
    pub(crate) fn padded(batch: &JsValue, len: &JsValue) -> Result<Self> {
        Ok(Self::Padded { batch: size("batch", batch)?, len: size("len", len)? })
    }

    pub(crate) fn packed(cu_seqlens: &JsValue) -> Result<Self> {
        Ok(Self::Packed { cu_seqlens: words("cu_seqlens", cu_seqlens)? })
    }

    /// `{ batch, len }` or `{ cuSeqlens }`.
    pub(crate) fn read(name: &str, given: &JsValue) -> Result<Self> {
        object(name, given)?;
        let offsets = field(given, "cu_seqlens")?;
        if offsets.is_undefined() {
            closed(name, given, &["batch", "len", "cu_seqlens"])?;
            return Self::padded(&field(given, "batch")?, &field(given, "len")?);
        }
        closed(name, given, &["cu_seqlens"])?;
        Self::packed(&offsets)
    }

    pub(crate) fn view(&self) -> Result<Layout<'_>> {
        Ok(match self {
            Self::Padded { batch, len } => Layout::padded(*batch, *len)?,
            Self::Packed { cu_seqlens } => Layout::packed(cu_seqlens)?,
        })
    }
}
