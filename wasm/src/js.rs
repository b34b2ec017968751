//! What is used of JavaScript, and no more: a crate with all of it leaves code in the module that nobody calls.

use alloc::vec::Vec;

use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

#[wasm_bindgen]
extern "C" {
    pub(crate) type Float32Array;
    /// Rounds; what is an `f32` already stays as it is.
    #[wasm_bindgen(constructor)]
    pub(crate) fn rounded(from: &[f64]) -> Float32Array;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new(from: &[f32]) -> Float32Array;

    pub(crate) type Float64Array;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new(from: &[f64]) -> Float64Array;

    pub(crate) type Uint32Array;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new(from: &[u32]) -> Uint32Array;

    pub(crate) type Uint8Array;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new(from: &[u8]) -> Uint8Array;

    /// Any of them.
    pub(crate) type AnyArray;
    #[wasm_bindgen(method, getter, structural)]
    pub(crate) fn length(this: &AnyArray) -> usize;

    #[wasm_bindgen(js_namespace = ["Float32Array", "prototype", "set"], js_name = "call")]
    pub(crate) fn copy_f32(to: &mut [f32], from: &JsValue);
    /// From an array of either kind of numbers.
    #[wasm_bindgen(js_namespace = ["Float64Array", "prototype", "set"], js_name = "call")]
    pub(crate) fn copy_f64(to: &mut [f64], from: &JsValue);
    #[wasm_bindgen(js_namespace = ["Uint32Array", "prototype", "set"], js_name = "call")]
    pub(crate) fn copy_u32(to: &mut [u32], from: &JsValue);
    #[wasm_bindgen(js_namespace = ["Uint8Array", "prototype", "set"], js_name = "call")]
    pub(crate) fn copy_u8(to: &mut [u8], from: &JsValue);

    pub(crate) type Array;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new() -> Array;
    #[wasm_bindgen(method)]
    pub(crate) fn push(this: &Array, value: &JsValue) -> u32;
    #[wasm_bindgen(method, getter, structural, js_name = "length")]
    pub(crate) fn len(this: &Array) -> usize;
    #[wasm_bindgen(method)]
    pub(crate) fn at(this: &Array, index: usize) -> JsValue;
    #[wasm_bindgen(js_namespace = Array, js_name = "of")]
    pub(crate) fn pair(first: &JsValue, second: &JsValue) -> JsValue;

    pub(crate) type Object;
    #[wasm_bindgen(constructor)]
    pub(crate) fn new() -> Object;
    #[wasm_bindgen(js_namespace = Object)]
    pub(crate) fn keys(of: &JsValue) -> Vec<JsValue>;
    #[wasm_bindgen(catch, js_namespace = Reflect)]
    pub(crate) fn get(of: &JsValue, key: &str) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(catch, js_namespace = Reflect)]
    pub(crate) fn set(of: &JsValue, key: &str, value: &JsValue) -> Result<bool, JsValue>;

    pub(crate) type TypeError;

    #[wasm_bindgen(js_name = "Number")]
    pub(crate) fn number(text: &str) -> f64;
}
