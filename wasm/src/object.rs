//! Reading and writing plain objects: inputs and configs in, results out.

use alloc::vec::Vec;

use wasm_bindgen::JsValue;

use crate::{
    array::{read, Element},
    error::{listed, unknown_choice, unknown_key, wrong_type, Result},
    js,
};

/// The largest number up to which every whole number is one.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// A config enum: its values, and their names in kebab-case.
pub(crate) trait Choice: Copy + 'static {
    /// The names.
    const NAMES: &'static [&'static str];
    /// The values, in the same order.
    const VALUES: &'static [Self];
}

/// An object whose fields are read by name.
pub(crate) struct Fields<'a>(&'a JsValue);

impl<'a> Fields<'a> {
    /// An input. Its fields are all required, so a misspelt one shows as missing; others are not looked at, so that one
    /// object with all arrays of a step can be handed to every function.
    pub(crate) fn input(parameter: &str, value: &'a JsValue) -> Result<Self> {
        if value.is_object() {
            Ok(Self(value))
        } else {
            Err(wrong_type(parameter, "an object", value))
        }
    }

    /// A config: `undefined` or an object with none but these keys, all of them optional.
    pub(crate) fn config(parameter: &str, value: &'a JsValue, keys: &[&str]) -> Result<Self> {
        if value.is_undefined() {
            return Ok(Self(value));
        }
        let fields = Self::input(parameter, value)?;
        for key in js::Object::keys(value) {
            let key = key.as_string().unwrap_or_default();
            if !keys.contains(&key.as_str()) {
                return Err(unknown_key(parameter, &key, keys));
            }
        }
        Ok(fields)
    }

    /// The value of a field, `undefined` if it is not there.
    pub(crate) fn get(&self, key: &str) -> Result<JsValue> {
        if self.0.is_undefined() {
            return Ok(JsValue::UNDEFINED);
        }
        Ok(js::get(self.0, key)?)
    }

    pub(crate) fn array<T: Element>(&self, key: &str) -> Result<Vec<T>> {
        read(key, &self.get(key)?)
    }

    /// An array that need not be there.
    pub(crate) fn optional_array<T: Element>(&self, key: &str) -> Result<Option<Vec<T>>> {
        let value = self.get(key)?;
        if value.is_undefined() {
            return Ok(None);
        }
        read(key, &value).map(Some)
    }

    /// A required number.
    pub(crate) fn number(&self, key: &str) -> Result<f64> {
        number(key, &self.get(key)?)
    }

    /// A required size.
    pub(crate) fn size(&self, key: &str) -> Result<usize> {
        size(key, &self.get(key)?)
    }

    /// A required count.
    pub(crate) fn count(&self, key: &str) -> Result<u64> {
        count(key, &self.get(key)?)
    }

    pub(crate) fn number_or(&self, key: &str, default: f64) -> Result<f64> {
        let value = self.get(key)?;
        if value.is_undefined() {
            Ok(default)
        } else {
            number(key, &value)
        }
    }

    /// A number, or `null` for none.
    pub(crate) fn nullable_or(&self, key: &str, default: Option<f64>) -> Result<Option<f64>> {
        let value = self.get(key)?;
        match value.as_f64() {
            Some(number) => Ok(Some(number)),
            None if value.is_undefined() => Ok(default),
            None if value.is_null() => Ok(None),
            None => Err(wrong_type(key, "a number or null", &value)),
        }
    }

    pub(crate) fn u32_or(&self, key: &str, default: u32) -> Result<u32> {
        let value = self.get(key)?;
        if value.is_undefined() {
            Ok(default)
        } else {
            whole(key, &value, u32::MAX.into()).map(|whole| whole as u32)
        }
    }

    pub(crate) fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        let value = self.get(key)?;
        if value.is_undefined() {
            Ok(default)
        } else {
            size(key, &value)
        }
    }

    pub(crate) fn count_or(&self, key: &str, default: u64) -> Result<u64> {
        let value = self.get(key)?;
        if value.is_undefined() {
            Ok(default)
        } else {
            count(key, &value)
        }
    }

    pub(crate) fn choice_or<T: Choice>(&self, key: &str, default: T) -> Result<T> {
        let chosen = self.chosen(key, T::NAMES)?;
        Ok(chosen.and_then(|index| T::VALUES.get(index).copied()).unwrap_or(default))
    }

    /// The index of the name in the field, if there is one.
    pub(crate) fn chosen(&self, key: &str, names: &[&str]) -> Result<Option<usize>> {
        let value = self.get(key)?;
        if value.is_undefined() {
            return Ok(None);
        }
        let name = value.as_string().ok_or_else(|| wrong_type(key, &listed(names, " | "), &value))?;
        match names.iter().position(|&known| known == name) {
            Some(index) => Ok(Some(index)),
            None => Err(unknown_choice(key, &name, names)),
        }
    }
}

/// Reads an enum whose variants have fields: `kind` says which variant, the other keys are its numbers. None for `undefined`.
#[inline(never)]
pub(crate) fn tagged(parameter: &str, value: &JsValue, kinds: &[(&str, &[&str])]) -> Result<Option<(usize, [f64; 5])>> {
    if value.is_undefined() {
        return Ok(None);
    }
    let fields = Fields::input(parameter, value)?;
    let names: Vec<&str> = kinds.iter().map(|&(name, _)| name).collect();
    let Some(kind) = fields.chosen("kind", &names)? else {
        return Err(wrong_type("kind", &listed(&names, " | "), &JsValue::UNDEFINED));
    };
    let keys = kinds.get(kind).map_or(&[] as &[&str], |&(_, keys)| keys);
    Fields::config(parameter, value, &[&["kind"], keys].concat())?;
    let mut numbers = [0.0; 5];
    for (number, key) in numbers.iter_mut().zip(keys) {
        *number = fields.number(key)?;
    }
    Ok(Some((kind, numbers)))
}

/// The name of a choice.
pub(crate) fn name_of<T: Choice + PartialEq>(choice: T) -> &'static str {
    let index = T::VALUES.iter().position(|&value| value == choice);
    index.and_then(|index| T::NAMES.get(index).copied()).unwrap_or_default()
}

/// A number; NaN and the infinities are for the core to judge.
pub(crate) fn number(parameter: &str, value: &JsValue) -> Result<f64> {
    value.as_f64().ok_or_else(|| wrong_type(parameter, "a number", value))
}

/// A whole number of things in memory.
pub(crate) fn size(parameter: &str, value: &JsValue) -> Result<usize> {
    whole(parameter, value, u32::MAX.into()).map(|whole| whole as usize)
}

/// A whole number of things anywhere.
pub(crate) fn count(parameter: &str, value: &JsValue) -> Result<u64> {
    whole(parameter, value, MAX_SAFE_INTEGER)
}

fn whole(parameter: &str, value: &JsValue, most: f64) -> Result<u64> {
    match value.as_f64() {
        // the conversion saturates, so the comparison fails for NaN, fractions and negative numbers
        Some(number) if number <= most && (number as u64) as f64 == number => Ok(number as u64),
        _ if most > u32::MAX.into() => Err(wrong_type(parameter, "a whole number from 0 to 2^53 - 1", value)),
        _ => Err(wrong_type(parameter, "a whole number from 0 to 2^32 - 1", value)),
    }
}

/// A fresh object.
pub(crate) fn object<const N: usize>(fields: [(&str, JsValue); N]) -> Result<JsValue> {
    assembled(&fields)
}

/// A fresh object of named numbers.
pub(crate) fn numbers(entries: impl Iterator<Item = (&'static str, f64)>) -> Result<JsValue> {
    #[inline(never)]
    fn push(all: &mut Vec<(&str, JsValue)>, (key, value): (&'static str, f64)) {
        all.push((key, value.into()));
    }
    let mut all = Vec::new();
    entries.for_each(|entry| push(&mut all, entry));
    assembled(&all)
}

/// Apart from [`object`], so that its code exists once.
#[inline(never)]
fn assembled(fields: &[(&str, JsValue)]) -> Result<JsValue> {
    let object = js::Object::new();
    for (key, value) in fields {
        js::set(&object, key, value)?;
    }
    Ok(object.into())
}
