//! Typed arrays: copied in, fresh ones out.

use alloc::vec::Vec;

use tokenwise::{Either, Error, Real as _};
use wasm_bindgen::{JsCast, JsValue};

use crate::{
    error::{no_memory, wrong_type, Result},
    js::{self, AnyArray, Float32Array, Float64Array, Uint32Array, Uint8Array},
};

/// A number that has a typed array.
pub(crate) trait Element: Copy + Default {
    /// How messages name the array.
    fn name() -> &'static str;

    /// A copy of the array, if it is one of this type.
    fn copied(value: &JsValue) -> Option<Result<Vec<Self>>>;

    /// A fresh array.
    fn array(values: &[Self]) -> JsValue;
}

macro_rules! element {
    ($($type:ty, $array:ident, $copy:ident, $name:literal;)*) => {$(
        impl Element for $type {
            fn name() -> &'static str {
                $name
            }

            fn copied(value: &JsValue) -> Option<Result<Vec<Self>>> {
                let array = value.dyn_ref::<$array>()?;
                Some(zeros(array.unchecked_ref::<AnyArray>().length()).map(|mut copy| {
                    js::$copy(&mut copy, array);
                    copy
                }))
            }

            fn array(values: &[Self]) -> JsValue {
                $array::new(values).into()
            }
        }
    )*};
}

element! {
    f32, Float32Array, copy_f32, "a Float32Array";
    f64, Float64Array, copy_f64, "a Float64Array";
    u32, Uint32Array, copy_u32, "a Uint32Array";
    u8, Uint8Array, copy_u8, "a Uint8Array";
}

/// A number a formula can be computed in.
pub(crate) trait Real: Element + tokenwise::Real + tokenwise::policy::Logit<Compute = Self> {}
impl Real for f32 {}
impl Real for f64 {}
impl Real for Either {}

/// JavaScript converts between the two kinds of arrays; both ways are exact.
impl Element for Either {
    fn name() -> &'static str {
        if Self::is_single() {
            f32::name()
        } else {
            f64::name()
        }
    }

    #[inline(never)]
    fn copied(value: &JsValue) -> Option<Result<Vec<Self>>> {
        let known = if Self::is_single() {
            value.is_instance_of::<Float32Array>()
        } else {
            value.is_instance_of::<Float64Array>()
        };
        known.then(|| {
            let mut copy = zeros(value.unchecked_ref::<AnyArray>().length())?;
            js::copy_f64(&mut copy, value);
            Ok(copy.into_iter().map(Self::from).collect())
        })
    }

    #[inline(never)]
    fn array(values: &[Self]) -> JsValue {
        let values: Vec<f64> = values.iter().map(|value| value.widen()).collect();
        if Self::is_single() {
            Float32Array::rounded(&values).into()
        } else {
            Float64Array::new(&values).into()
        }
    }
}

/// A copy of an array that a call was handed.
pub(crate) fn read<T: Element>(parameter: &str, value: &JsValue) -> Result<Vec<T>> {
    T::copied(value).unwrap_or_else(|| Err(wrong_type(parameter, T::name(), value)))
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
