//! What a refused call throws: a `TokenwiseError` with the fields of the core's error. Its message is written by `glue.js`.

use alloc::{boxed::Box, string::String};

use tokenwise::Error;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::js;

/// The JavaScript error to be thrown; it has been built already.
pub(crate) struct Refused(JsValue);

/// The result of every function here.
pub(crate) type Result<T> = core::result::Result<T, Refused>;

impl From<Refused> for JsValue {
    fn from(refused: Refused) -> Self {
        refused.0
    }
}

/// What JavaScript itself threw, such as the getter of an input object, goes on unchanged.
impl From<JsValue> for Refused {
    fn from(thrown: JsValue) -> Self {
        Self(thrown)
    }
}

impl From<Box<Error>> for Refused {
    fn from(error: Box<Error>) -> Self {
        (*error).into()
    }
}

impl From<Error> for Refused {
    #[inline(never)]
    fn from(error: Error) -> Self {
        let number = |x: usize| JsValue::from_f64(x as f64);
        let (expected, got) = match error {
            Error::Length { expected, got, .. } => (number(expected), number(got)),
            Error::Offsets { at_least, got, .. } => (at_least.into(), got.into()),
            Error::TokenId { id, vocab, .. } => (number(vocab), id.into()),
            Error::Group { id, sequences, .. } => (number(sequences), id.into()),
            Error::Sequence { at_least, got, .. } => (number(at_least), number(got)),
            Error::Config { must_be, got, .. } | Error::Entry { must_be, got, .. } => (must_be.into(), got.into()),
            Error::EmptyMask => (number(1), number(0)),
            Error::TooFew { needed, got, .. } => (number(needed), number(got)),
            Error::Overflow { factors: (a, b), .. } => (JsValue::UNDEFINED, js::Array::pair(&number(a), &number(b))),
            _ => (JsValue::UNDEFINED, JsValue::UNDEFINED),
        };
        let index = error.index().map_or(-1.0, |index| index as f64);
        Self(TokenwiseError::new(error.code(), error.parameter(), index, &expected, &got).into())
    }
}

/// A value of the wrong kind: code `type`.
#[inline(never)]
pub(crate) fn wrong_type(parameter: &str, expected: &str, got: &JsValue) -> Refused {
    refused("type", parameter, expected, got)
}

/// A key that the object does not know: code `key`.
#[inline(never)]
pub(crate) fn unknown_key(object: &str, key: &str, allowed: &[&str]) -> Refused {
    refused("key", key, &listed(allowed, ", "), &object.into())
}

/// A string that names none of the choices: code `choice`.
#[inline(never)]
pub(crate) fn unknown_choice(parameter: &str, got: &str, allowed: &[&str]) -> Refused {
    refused("choice", parameter, &listed(allowed, ", "), &got.into())
}

/// An object of ours after `free()`: code `freed`.
pub(crate) fn freed(parameter: &str, expected: &str) -> Refused {
    refused("freed", parameter, expected, &JsValue::UNDEFINED)
}

/// More memory than there is: code `memory`.
pub(crate) fn no_memory(entries: usize) -> Refused {
    refused("memory", "memory", "room for the arrays", &JsValue::from_f64(entries as f64))
}

fn refused(code: &str, parameter: &str, expected: &str, got: &JsValue) -> Refused {
    Refused(TokenwiseError::new(code, parameter, -1.0, &expected.into(), got).into())
}

/// Names with something between them.
#[inline(never)]
pub(crate) fn listed(names: &[&str], between: &str) -> String {
    let mut all = String::new();
    for name in names {
        if !all.is_empty() {
            all.push_str(between);
        }
        all.push_str(name);
    }
    all
}

#[wasm_bindgen]
extern "C" {
    /// The class in `glue.js`; an index of −1 is none.
    type TokenwiseError;
    #[wasm_bindgen(constructor)]
    fn new(code: &str, parameter: &str, index: f64, expected: &JsValue, got: &JsValue) -> TokenwiseError;
}
