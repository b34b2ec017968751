//! Settings of Python as the catalogue's [`Value`], and back.

use pyo3::{
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple},
    IntoPyObjectExt as _,
};
use tokenwise_catalogue::Value;

use crate::error::{described, wrong};

/// A config is not deeper; a dict that holds itself would have no end.
const DEPTH: usize = 8;

/// The keyword arguments that are settings, as a config. A trailing underscore is dropped, for names that are reserved
/// in Python (`lambda_`).
pub(crate) fn config(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Value> {
    match settings {
        None => Ok(Value::EMPTY),
        Some(settings) => map(settings, DEPTH),
    }
}

/// A config given as one object: a dict, or the name of a choice.
pub(crate) fn value(key: &str, given: &Bound<'_, PyAny>) -> PyResult<Value> {
    read(key, given, DEPTH)
}

fn map(given: &Bound<'_, PyDict>, depth: usize) -> PyResult<Value> {
    let mut pairs = Vec::with_capacity(given.len());
    for (key, item) in given {
        let Ok(name) = key.cast::<PyString>() else {
            return Err(wrong(given.py(), "key", "config", "keys that are strings", &described(&key)));
        };
        let name = name.to_cow()?;
        let name = name.strip_suffix('_').unwrap_or(&name);
        pairs.push((name.to_owned(), read(name, &item, depth - 1)?));
    }
    Ok(Value::Map(pairs))
}

fn read(key: &str, given: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if given.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = given.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>() {
        return Ok(Value::Number(given.extract()?));
    }
    if let Ok(text) = given.cast::<PyString>() {
        return Ok(Value::Text(text.to_cow()?.into_owned()));
    }
    let plain = "a number, a boolean, a string, None, a list or a dict";
    if depth == 0 {
        return Err(wrong(given.py(), "type", key, plain, "values nested too deeply"));
    }
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        let items = given.try_iter()?.map(|item| read(key, &item?, depth - 1));
        return Ok(Value::List(items.collect::<PyResult<_>>()?));
    }
    if let Ok(dict) = given.cast::<PyDict>() {
        return map(dict, depth);
    }
    if given.cast::<PyMapping>().is_ok() {
        let dict = PyDict::new(given.py());
        dict.update(given.cast::<PyMapping>()?)?;
        return map(&dict, depth);
    }
    // numpy.bool_ is neither a bool nor a number with an exact float
    if given.get_type().name()?.to_cow()?.starts_with("bool") {
        return Ok(Value::Bool(given.is_truthy()?));
    }
    // scalars of NumPy and of torch have `__float__`
    match given.extract::<f64>() {
        Ok(number) => Ok(Value::Number(number)),
        Err(_) => Err(wrong(given.py(), "type", key, plain, &described(given))),
    }
}

/// A [`Value`] as a Python object.
pub(crate) fn to_python(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    match value {
        Value::Null => Ok(py.None()),
        Value::Bool(flag) => flag.into_py_any(py),
        Value::Number(number) => number.into_py_any(py),
        Value::Text(text) => text.into_py_any(py),
        Value::List(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_py_any(py)
        }
        Value::Map(pairs) => {
            let dict = PyDict::new(py);
            for (key, value) in pairs {
                dict.set_item(key, to_python(py, value)?)?;
            }
            dict.into_py_any(py)
        }
        _ => Ok(py.None()),
    }
}
