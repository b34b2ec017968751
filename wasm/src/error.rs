//! Why a call was refused, as the `TokenwiseError` that JavaScript catches.
//!
//! The texts are the core's and the catalogue's, with the names in camelCase. Only what concerns JavaScript values
//! alone (a wrong class, a freed object) is worded in `js/error.js`.

use tokenwise::Error;
use tokenwise_catalogue::{ConfigError, ConfigFault, Element, Refusal, Value};
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use crate::{names::camel_case, value::to_js};

#[wasm_bindgen(raw_module = "./error.js")]
extern "C" {
    type TokenwiseError;

    #[wasm_bindgen(constructor)]
    fn new(
        message: &str,
        code: &str,
        parameter: &str,
        index: Option<u32>,
        expected: JsValue,
        got: JsValue,
    ) -> TokenwiseError;

    #[wasm_bindgen(js_name = wrongType)]
    fn wrong_type_js(parameter: &str, expected: &str, got: &JsValue) -> JsValue;
}

/// What a function throws.
pub struct Thrown(JsValue);

/// The result of every function here.
pub(crate) type Result<T = JsValue> = core::result::Result<T, Thrown>;

impl From<Thrown> for JsValue {
    fn from(thrown: Thrown) -> Self {
        thrown.0
    }
}

/// What a getter of an argument threw goes through as it is.
impl From<JsValue> for Thrown {
    fn from(thrown: JsValue) -> Self {
        Self(thrown)
    }
}

/// A value of the wrong type.
pub(crate) fn wrong_type(parameter: &str, expected: &str, got: &JsValue) -> Thrown {
    Thrown(wrong_type_js(&camel_case(parameter), expected, got))
}

/// More memory than there is.
pub(crate) fn no_memory(entries: usize) -> Thrown {
    let message = format!("memory: no room for {entries} entries");
    let (expected, got) = ("room for the arrays".into(), (entries as f64).into());
    Thrown(TokenwiseError::new(&message, "memory", "memory", None, expected, got).into())
}

impl From<Error> for Thrown {
    fn from(error: Error) -> Self {
        let number = |x: usize| JsValue::from(x as f64);
        let words = |text: &str| JsValue::from(camel_case(text));
        let (expected, got) = match error {
            Error::Length { expected, got, .. } => (number(expected), number(got)),
            Error::Offsets { at_least, got, .. } => (at_least.into(), got.into()),
            Error::TokenId { id, vocab, .. } => (number(vocab), id.into()),
            Error::Group { id, sequences, .. } => (number(sequences), id.into()),
            Error::Sequence { at_least, got, .. } => (number(at_least), number(got)),
            Error::Config { must_be, got, .. } | Error::Entry { must_be, got, .. } => (words(must_be), got.into()),
            Error::EmptyMask => (1.into(), 0.into()),
            Error::TooFew { needed, got, .. } => (number(needed), number(got)),
            Error::Overflow { factors: (a, b), .. } => {
                (words("a product that fits into a machine word"), js_sys::Array::of2(&number(a), &number(b)).into())
            }
            _ => (JsValue::UNDEFINED, JsValue::UNDEFINED),
        };
        let (message, parameter) = (camel_case(&error.to_string()), camel_case(error.parameter()));
        let index = error.index().map(|index| index as u32);
        Self(TokenwiseError::new(&message, error.code(), &parameter, index, expected, got).into())
    }
}

/// What the GPU refuses or fails at; calls that the core refuses have the core's words.
#[cfg(feature = "gpu-shim")]
impl From<tokenwise_gpu::GpuError> for Thrown {
    fn from(error: tokenwise_gpu::GpuError) -> Self {
        use tokenwise_gpu::GpuError;
        if let GpuError::Core(error) = error {
            return error.into();
        }
        let number = |x: u64| JsValue::from(x as f64);
        let (expected, got) = match &error {
            GpuError::Adapter { needed, limit, .. } | GpuError::Limit { needed, limit, .. } => {
                (number(*needed), number(*limit))
            }
            GpuError::NoAdapter(_) => ("a WebGPU adapter".into(), JsValue::NULL),
            _ => (JsValue::UNDEFINED, JsValue::UNDEFINED),
        };
        Self(TokenwiseError::new(&error.to_string(), error.code(), "gpu", None, expected, got).into())
    }
}

impl From<ConfigError> for Thrown {
    fn from(error: ConfigError) -> Self {
        let expected = camel_case(&error.expected);
        let got = error.got.as_ref().map_or(JsValue::UNDEFINED, to_js);
        if error.fault == ConfigFault::Type {
            return wrong_type(&error.parameter, &expected, &got);
        }
        let parameter = camel_case(&error.parameter);
        let got = if error.fault == ConfigFault::Key { JsValue::from(&parameter) } else { got };
        // names of choices are kebab-case: nothing in the text but names of keys has an underscore, except what was
        // given
        let message = match (&error.fault, &error.got) {
            (ConfigFault::Choice, Some(Value::Text(text))) if text.contains('_') => error.to_string(),
            _ => camel_case(&error.to_string()),
        };
        Self(TokenwiseError::new(&message, error.fault.code(), &parameter, None, expected.into(), got).into())
    }
}

/// Columns are read by their entries' types before a call, so that only a few reasons are left.
pub(crate) fn refused(refusal: Refusal, array: &str) -> Thrown {
    match refusal {
        Refusal::Core(error) => error.into(),
        Refusal::Config(error) => error.into(),
        Refusal::Missing { input, element } => wrong_type(last(input), words(element, array), &JsValue::UNDEFINED),
        Refusal::Over { what } => wrong_type(what, "an object", &JsValue::UNDEFINED),
        other => Thrown(js_sys::Error::new(&camel_case(&other.to_string())).into()),
    }
}

/// The key of a field: `policy_loss.kl` → `kl`
pub(crate) fn last(column: &str) -> &str {
    column.rsplit('.').next().unwrap_or(column)
}

/// What a column must be; `array` is that of the call's precision.
pub(crate) fn words(element: Element, array: &str) -> &str {
    match element {
        Element::Real => array,
        Element::Double => "a Float64Array",
        Element::Index | Element::Count => "a Uint32Array",
        Element::Flag => "a Uint8Array",
        Element::Size => crate::read::WHOLE_32,
        Element::Number => "a number",
        _ => "a string",
    }
}
