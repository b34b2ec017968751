//! Typed arrays: copied in, fresh ones out.

use js_sys::{Float32Array, Float64Array, Uint32Array, Uint8Array};
use tokenwise::Error;
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{no_memory, wrong_type, Result};

/// A number that has a typed array.
pub(crate) trait Element: Copy + Default {
    /// How messages name the array.
    const ARRAY: &'static str;

    /// A copy of the array, if it is one of this type.
    fn copied(value: &JsValue) -> Option<Result<Vec<Self>>>;

    /// A fresh array.
    fn array(values: &[Self]) -> JsValue;
}

macro_rules! element {
    ($($type:ty, $array:ident, $name:literal;)*) => {$(
        impl Element for $type {
            const ARRAY: &'static str = $name;

            fn copied(value: &JsValue) -> Option<Result<Vec<Self>>> {
                let array = value.dyn_ref::<$array>()?;
                Some(zeros(array.length() as usize).map(|mut copy| {
                    array.copy_to(&mut copy);
                    copy
                }))
            }

            fn array(values: &[Self]) -> JsValue {
                $array::from(values).into()
            }
        }
    )*};
}

element! {
    f32, Float32Array, "a Float32Array";
    f64, Float64Array, "a Float64Array";
    u32, Uint32Array, "a Uint32Array";
    u8, Uint8Array, "a Uint8Array";
}

/// A number a formula can be computed in.
pub(crate) trait Real: Element + tokenwise::Real + tokenwise::policy::Logit<Compute = Self> {}
impl Real for f32 {}
impl Real for f64 {}

/// A copy of an array that a call was handed.
pub(crate) fn read<T: Element>(parameter: &str, value: &JsValue) -> Result<Vec<T>> {
    T::copied(value).unwrap_or_else(|| Err(wrong_type(parameter, T::ARRAY, value)))
}

/// A copy of an array of flags: a `Uint8Array` of 0 and 1.
pub(crate) fn flags(parameter: &'static str, value: &JsValue) -> Result<Vec<bool>> {
    let bytes: Vec<u8> = read(parameter, value)?;
    match bytes.iter().position(|&byte| byte > 1) {
        Some(index) => {
            let got = f64::from(bytes[index]);
            Err(Error::Entry { what: parameter, index, must_be: "0 or 1", got }.into())
        }
        None => Ok(bytes.into_iter().map(|byte| byte == 1).collect()),
    }
}

/// A fresh `Uint8Array` of 0 and 1.
pub(crate) fn flag_array(flags: &[bool]) -> JsValue {
    u8::array(&flags.iter().map(|&flag| u8::from(flag)).collect::<Vec<_>>())
}

/// Room for an output. Memory that cannot be had is an error, not a trap.
pub(crate) fn zeros<T: Clone + Default>(len: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| no_memory(len))?;
    out.resize(len, T::default());
    Ok(out)
}
