//! Results for JavaScript: numbers, fresh typed arrays, and objects of these.

use js_sys::{Object, Reflect, Uint32Array, Uint8Array};
use tokenwise_catalogue::Array;
use wasm_bindgen::{prelude::JsValue, JsCast};

use crate::{error::Result, read::Precision, value::key};

/// An object under construction.
pub(crate) struct Record(Object);

impl Record {
    pub(crate) fn new() -> Self {
        Self(Object::new())
    }

    /// Sets a key as it is, such as that of a metric.
    pub(crate) fn entry(&self, key: &str, value: impl Into<JsValue>) -> Result<()> {
        Reflect::set(&self.0, &key.into(), &value.into())?;
        Ok(())
    }

    /// Sets a field by its name in snake_case; that of an inner object by a name with a dot.
    pub(crate) fn field(&self, name: &str, value: impl Into<JsValue>) -> Result<()> {
        match name.split_once('.') {
            None => {
                Reflect::set(&self.0, &key(name), &value.into())?;
                Ok(())
            }
            Some((outer, inner)) => self.inner(outer)?.field(inner, value),
        }
    }

    /// The object under a name, made when it is first asked for.
    pub(crate) fn inner(&self, name: &str) -> Result<Self> {
        let found = Reflect::get(&self.0, &key(name))?;
        if found.is_object() {
            return Ok(Self(Object::from(found)));
        }
        let made = Self::new();
        Reflect::set(&self.0, &key(name), &made.0)?;
        Ok(made)
    }

    /// Whether there is something under a name.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        Ok(!Reflect::get(&self.0, &key(name))?.is_undefined())
    }
}

impl From<Record> for JsValue {
    fn from(record: Record) -> Self {
        record.0.into()
    }
}

/// Metrics by the keys they are logged under.
#[cfg(feature = "full")]
pub(crate) fn entries(all: impl IntoIterator<Item = (&'static str, f64)>) -> Result {
    let record = Record::new();
    for (key, value) in all {
        record.entry(key, value)?;
    }
    Ok(record.into())
}

/// A number, or `null`.
#[cfg(feature = "full")]
pub(crate) fn or_null(value: Option<impl Into<JsValue>>) -> JsValue {
    value.map_or(JsValue::NULL, Into::into)
}

/// Entries in a typed array of the caller's, whose class and length were checked, or in a fresh one.
macro_rules! written {
    ($class:ty, $entries:expr, $into:expr) => {
        match $into.and_then(|into| into.dyn_ref::<$class>()) {
            Some(into) => {
                into.copy_from($entries);
                into.into()
            }
            None => <$class>::from($entries).into(),
        }
    };
}
pub(crate) use written;

/// A typed array: one of the caller's, or a fresh one.
pub(crate) fn array<R: Precision>(array: &Array<R>, into: Option<&JsValue>) -> JsValue {
    match array {
        Array::Real(reals) => R::write(reals, into),
        Array::Double(numbers) => f64::write(numbers, into),
        Array::Index(words) => written!(Uint32Array, words.as_slice(), into),
        Array::Count(counts) => {
            // no batch of a 32-bit module has more tokens than that
            let words: Vec<u32> = counts.iter().map(|&count| count as u32).collect();
            written!(Uint32Array, words.as_slice(), into)
        }
        Array::Flag(flags) => {
            let bytes: Vec<u8> = flags.iter().map(|&flag| flag.into()).collect();
            written!(Uint8Array, bytes.as_slice(), into)
        }
        Array::Size(size) => (*size as f64).into(),
        Array::Number(number) => (*number).into(),
        Array::Text(text) => text.into(),
        _ => JsValue::UNDEFINED,
    }
}
