//! Why a call was refused, as the `TokenwiseError` that Python catches.

use pyo3::{prelude::*, sync::PyOnceLock, types::PyType, IntoPyObjectExt as _};
use tokenwise::Error;
use tokenwise_catalogue::{ConfigError, Element, Refusal};

use crate::value::to_python;

static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The parts of a `TokenwiseError`. Boxed: it is moved at every `?`, and an error is rare.
pub(crate) struct Refused {
    pub(crate) message: String,
    pub(crate) code: &'static str,
    pub(crate) parameter: String,
    pub(crate) index: Option<usize>,
    pub(crate) expected: Option<Py<PyAny>>,
    pub(crate) got: Option<Py<PyAny>>,
}

/// The exception for a refused call.
pub(crate) fn raise(py: Python<'_>, refused: Refused) -> PyErr {
    let class = CLASS.get_or_try_init(py, || {
        let class = py.import("tokenwise_rl._errors")?.getattr("TokenwiseError")?;
        Ok::<_, PyErr>(class.cast_into::<PyType>()?.unbind())
    });
    let Refused { message, code, parameter, index, expected, got } = refused;
    match class.and_then(|class| class.bind(py).call1((message, code, parameter, index, expected, got))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// A value of the wrong type, shape or dtype.
pub(crate) fn wrong(py: Python<'_>, code: &'static str, parameter: &str, expected: &str, got: &str) -> PyErr {
    let message = format!("{parameter}: expected {expected}, got {got}");
    let (expected, got) = (expected.into_py_any(py).ok(), got.into_py_any(py).ok());
    raise(py, Refused { message, code, parameter: parameter.into(), index: None, expected, got })
}

/// A call that the core refused.
pub(crate) fn core(py: Python<'_>, error: &Error) -> PyErr {
    let (expected, got) = match *error {
        Error::Length { expected, got, .. } => (expected.into_py_any(py), got.into_py_any(py)),
        Error::Offsets { at_least, got, .. } => (at_least.into_py_any(py), got.into_py_any(py)),
        Error::TokenId { id, vocab, .. } => (vocab.into_py_any(py), id.into_py_any(py)),
        Error::Group { id, sequences, .. } => (sequences.into_py_any(py), id.into_py_any(py)),
        Error::Sequence { at_least, got, .. } => (at_least.into_py_any(py), got.into_py_any(py)),
        Error::Config { must_be, got, .. } | Error::Entry { must_be, got, .. } => {
            (must_be.into_py_any(py), got.into_py_any(py))
        }
        Error::EmptyMask => (1.into_py_any(py), 0.into_py_any(py)),
        Error::TooFew { needed, got, .. } => (needed.into_py_any(py), got.into_py_any(py)),
        Error::Overflow { factors, .. } => {
            ("a product that fits into a machine word".into_py_any(py), factors.into_py_any(py))
        }
        _ => (py.None().into_py_any(py), py.None().into_py_any(py)),
    };
    raise(
        py,
        Refused {
            message: error.to_string(),
            code: error.code(),
            parameter: error.parameter().into(),
            index: error.index(),
            expected: expected.ok(),
            got: got.ok(),
        },
    )
}

/// A config that could not be read.
pub(crate) fn config(py: Python<'_>, error: &ConfigError) -> PyErr {
    raise(
        py,
        Refused {
            message: error.to_string(),
            code: error.fault.code(),
            parameter: error.parameter.clone(),
            index: None,
            expected: error.expected.as_str().into_py_any(py).ok(),
            got: error.got.as_ref().map(|got| to_python(py, got)).and_then(PyResult::ok),
        },
    )
}

/// A call that the catalogue refused.
pub(crate) fn refusal(py: Python<'_>, refusal: &Refusal) -> PyErr {
    match refusal {
        Refusal::Core(error) => core(py, error),
        Refusal::Config(error) => config(py, error),
        Refusal::Missing { input, element } => wrong(py, "missing", input, words(*element), "nothing"),
        Refusal::Over { what } => wrong(py, "missing", what, "one group id per sequence", "nothing"),
        Refusal::Element { column, expected, got } => wrong(py, "type", column, words(*expected), words(*got)),
        other => wrong(py, "call", "call", "a call that fits the formula", &other.to_string()),
    }
}

/// What a column must be.
pub(crate) const fn words(element: Element) -> &'static str {
    match element {
        Element::Real => "an array of float32 or float64",
        Element::Double => "an array of float64",
        Element::Index => "an array of whole numbers",
        Element::Count => "an array of counts",
        Element::Flag => "an array of booleans",
        Element::Size => "a whole number",
        Element::Number => "a number",
        Element::Text => "a string",
        _ => "another type",
    }
}

/// A result of the core, with its error as an exception.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for tokenwise::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| core(py, &error))
    }
}

impl<T> OrRaise<T> for Result<T, ConfigError> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| config(py, &error))
    }
}

/// What was given, in words, for an error.
pub(crate) fn described(given: &Bound<'_, PyAny>) -> String {
    let name = given.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string());
    match given.getattr("dtype").and_then(|dtype| dtype.str()) {
        Ok(dtype) => format!("{name} of {dtype}"),
        Err(_) => name,
    }
}
