//! What a refused call throws: an `Error` with the fields of the core's error.

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
            Error::Config { must_be, got, .. } | Error::Entry { must_be, got, .. } => {
                (camel_case(must_be).into(), JsValue::from_f64(got))
            }
            Error::EmptyMask => (number(1), number(0)),
            Error::TooFew { needed, got, .. } => (number(needed), number(got)),
            Error::Overflow { factors: (a, b), .. } => {
                ("a product that fits into a machine word".into(), js::Array::pair(&number(a), &number(b)))
            }
            _ => (JsValue::UNDEFINED, JsValue::UNDEFINED),
        };
        let index = error.index().map_or(JsValue::UNDEFINED, number);
        refused(error.code(), error.parameter(), index, expected, got, &message(&error))
    }
}

/// The core's message. Its own `Display` would bring in the code that prints floating-point numbers, a tenth of the module
/// that JavaScript has already; a test holds the two together.
fn message(error: &Error) -> String {
    let number = |x: usize| text(x as f64);
    match *error {
        Error::Length { what, expected, got } => {
            [what, ": expected ", &number(expected), " entries, got ", &number(got)].concat()
        }
        Error::Offsets { index: 0, at_least, got } => {
            ["cu_seqlens[0]: expected ", &text(at_least.into()), ", got ", &text(got.into())].concat()
        }
        Error::Offsets { index, at_least, got } => {
            let (at_least, got) = (text(at_least.into()), text(got.into()));
            ["cu_seqlens[", &number(index), "]: expected at least ", &at_least, ", got ", &got].concat()
        }
        Error::TokenId { index, id, vocab } => {
            let (vocab, id) = (number(vocab), text(id.into()));
            ["tokens[", &number(index), "]: expected an id below the vocabulary size ", &vocab, ", got ", &id].concat()
        }
        Error::Group { index, id, sequences } => {
            let (id, sequences) = (text(id.into()), number(sequences));
            ["groups[", &number(index), "]: expected an id below ", &sequences, ", the number of sequences, got ", &id]
                .concat()
        }
        Error::Sequence { what, index, at_least, got } => {
            let (at_least, got) = (number(at_least), number(got));
            [what, "[", &number(index), "]: expected at least ", &at_least, " positions, got ", &got].concat()
        }
        Error::Config { what, must_be, got } => [what, ": must be ", must_be, ", got ", &text(got)].concat(),
        Error::Entry { what, index, must_be, got } => {
            [what, "[", &number(index), "]: must be ", must_be, ", got ", &text(got)].concat()
        }
        Error::EmptyMask => "mask: expected at least 1 kept token, got 0".into(),
        Error::TooFew { what, needed, got } => {
            [what, ": needs at least ", &number(needed), " kept entries, got ", &number(got)].concat()
        }
        Error::Overflow { what, factors: (a, b) } => {
            [what, ": ", &number(a), " × ", &number(b), " does not fit into a machine word"].concat()
        }
        _ => [error.parameter(), ": ", error.code()].concat(),
    }
}

/// A value of the wrong kind: code `type`.
pub(crate) fn wrong_type(parameter: &str, expected: &str, got: &JsValue) -> Refused {
    let (field, shown) = shown(got);
    let message = [parameter, ": expected ", expected, ", got ", &shown].concat();
    refused("type", parameter, JsValue::UNDEFINED, expected.into(), field, &message)
}

/// A key that the object does not know: code `key`.
pub(crate) fn unknown_key(object: &str, key: &str, allowed: &[&str]) -> Refused {
    let allowed = allowed.join(", ");
    let message = [key, ": not a key of ", object, ", which has ", &allowed].concat();
    refused("key", key, JsValue::UNDEFINED, allowed.into(), key.into(), &message)
}

/// A string that names none of the choices: code `choice`.
pub(crate) fn unknown_choice(parameter: &str, got: &str, allowed: &[&str]) -> Refused {
    let allowed = allowed.join(", ");
    let message = [parameter, ": expected one of ", &allowed, ", got ", got].concat();
    refused("choice", parameter, JsValue::UNDEFINED, allowed.into(), got.into(), &message)
}

/// An object of ours after `free()`: code `freed`.
pub(crate) fn freed(parameter: &str, expected: &str) -> Refused {
    let message = [parameter, ": expected ", expected, ", got one that was freed"].concat();
    let got = ["a freed", expected.get(1..).unwrap_or_default()].concat();
    refused("freed", parameter, JsValue::UNDEFINED, expected.into(), got.into(), &message)
}

/// More memory than there is: code `memory`.
pub(crate) fn no_memory(entries: usize) -> Refused {
    let message = ["memory: no room for ", &text(entries as f64), " entries"].concat();
    let got = JsValue::from_f64(entries as f64);
    refused("memory", "memory", JsValue::UNDEFINED, "room for the arrays".into(), got, &message)
}

#[inline(never)]
fn refused(code: &str, parameter: &str, index: JsValue, expected: JsValue, got: JsValue, message: &str) -> Refused {
    Refused(TokenwiseError::new(&camel_case(message), code, &camel_case(parameter), &index, &expected, &got).into())
}

/// A value as the field `got` and in words: primitives as they are, objects by the name of their class.
fn shown(value: &JsValue) -> (JsValue, String) {
    if value.is_object() || value.is_function() {
        let class = js::get(value, "constructor")
            .and_then(|constructor| js::get(&constructor, "name"))
            .ok()
            .and_then(|name| name.as_string())
            .unwrap_or_else(|| "object".into());
        return ((&class).into(), class);
    }
    let words = match value.as_string() {
        Some(string) => ["\"", &string, "\""].concat(),
        None => js::string(value),
    };
    (value.clone(), words)
}

/// The core's names as JavaScript spells them: `cu_seqlens` → `cuSeqlens`, in running text too.
fn camel_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut raise = false;
    for c in text.chars() {
        if c == '_' {
            raise = true;
        } else {
            out.push(if raise { c.to_ascii_uppercase() } else { c });
            raise = false;
        }
    }
    out
}

#[wasm_bindgen]
extern "C" {
    /// The class in `glue.js`.
    type TokenwiseError;
    #[wasm_bindgen(constructor)]
    fn new(
        message: &str,
        code: &str,
        parameter: &str,
        index: &JsValue,
        expected: &JsValue,
        got: &JsValue,
    ) -> TokenwiseError;
}

#[cfg(not(test))]
fn text(number: f64) -> String {
    js::string(&JsValue::from_f64(number))
}

/// Tests run where there is no JavaScript.
#[cfg(test)]
fn text(number: f64) -> String {
    number.to_string()
}

#[cfg(test)]
mod tests {
    use super::{camel_case, message, Error};

    #[test]
    fn names_are_spelled_as_in_javascript() {
        assert_eq!(camel_case("cu_seqlens[1]: expected at least 3, got 2"), "cuSeqlens[1]: expected at least 3, got 2");
    }

    #[test]
    fn messages_are_those_of_the_core() {
        let what = "values";
        for error in [
            Error::Length { what, expected: 4, got: 3 },
            Error::Offsets { index: 2, at_least: 3, got: 2 },
            Error::TokenId { index: 1, id: 7, vocab: 5 },
            Error::Offsets { index: 0, at_least: 0, got: 2 },
            Error::Group { index: 0, id: 9, sequences: 2 },
            Error::Sequence { what: "raw_layout", index: 1, at_least: 4, got: 3 },
            Error::Config { what, must_be: "in [0, 1]", got: 1.5 },
            Error::Entry { what, index: 3, must_be: "0 or 1", got: f64::NAN },
            Error::EmptyMask,
            Error::TooFew { what, needed: 2, got: 1 },
            Error::Overflow { what: "tokens × vocab", factors: (65536, 65536) },
        ] {
            assert_eq!(message(&error), error.to_string());
        }
    }
}
