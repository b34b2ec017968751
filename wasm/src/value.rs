//! A config of JavaScript as the catalogue's [`Value`].

use js_sys::{Array, ArrayBuffer, Object, Reflect};
use tokenwise_catalogue::Value;
use wasm_bindgen::{prelude::JsValue, JsCast};

use crate::{
    error::{wrong_type, Result},
    names::{camel_case, snake_case},
};

/// A config is not deeper; an object that holds itself would have no end.
const DEPTH: usize = 8;

/// Prompts as JavaScript gives them, inside the aggregation of a config. They are data, which the core's call takes
/// apart.
pub(crate) struct Prompts {
    pub(crate) groups: JsValue,
    pub(crate) tokens: JsValue,
}

/// A config and the prompts found in it. `undefined` is a config without keys, and a key that is `undefined` is not
/// there.
pub(crate) fn config(given: &JsValue) -> Result<(Value, Option<Prompts>)> {
    let mut prompts = None;
    let value = if given.is_undefined() { Value::EMPTY } else { value("config", given, DEPTH, &mut prompts)? };
    Ok((value, prompts))
}

fn value(key: &str, given: &JsValue, depth: usize, prompts: &mut Option<Prompts>) -> Result<Value> {
    if given.is_null() {
        return Ok(Value::Null);
    }
    if let Some(number) = given.as_f64() {
        return Ok(Value::Number(number));
    }
    if let Some(flag) = given.as_bool() {
        return Ok(Value::Bool(flag));
    }
    if let Some(text) = given.as_string() {
        return Ok(Value::Text(text));
    }
    if depth == 0 || !given.is_object() || ArrayBuffer::is_view(given) {
        return Err(wrong_type(key, "a number, a boolean, a string, null, an array or a plain object", given));
    }
    if let Some(list) = given.dyn_ref::<Array>() {
        let items = list.iter().map(|item| value(key, &item, depth - 1, prompts));
        return Ok(Value::List(items.collect::<Result<_>>()?));
    }
    let by_prompt = Reflect::get(given, &"mode".into())?.as_string().is_some_and(|mode| mode == "prompt-mean");
    if by_prompt {
        let (groups, tokens) = (Reflect::get(given, &"groups".into())?, Reflect::get(given, &"tokens".into())?);
        *prompts = Some(Prompts { groups, tokens });
    }
    let mut pairs = Vec::new();
    for name in Object::keys(given.unchecked_ref::<Object>()) {
        let field = Reflect::get(given, &name)?;
        let name = name.as_string().unwrap_or_default();
        if field.is_undefined() || (by_prompt && (name == "groups" || name == "tokens")) {
            continue;
        }
        let field = value(&name, &field, depth - 1, prompts)?;
        pairs.push((snake_case(&name), field));
    }
    Ok(Value::Map(pairs))
}

/// What was given, for an error; of lists and objects the class is enough.
pub(crate) fn to_js(value: &Value) -> JsValue {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => (*number).into(),
        Value::Text(text) => text.into(),
        Value::List(_) => Array::new().into(),
        Value::Map(_) => Object::new().into(),
        _ => JsValue::NULL,
    }
}

/// The key of a field as JavaScript has it.
pub(crate) fn key(name: &str) -> JsValue {
    camel_case(name).into()
}
