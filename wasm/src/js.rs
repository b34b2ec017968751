//! What is used of JavaScript: the functions of `js/call.js`, which has read and checked the arguments and names the results.

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    /// The next number of the call, or `usual` where none was given.
    #[wasm_bindgen(js_name = "next")]
    pub(crate) fn number(usual: f64) -> f64;
    /// The same for a whole number: a size, the index of a choice, the length of an array.
    #[wasm_bindgen(js_name = "next")]
    pub(crate) fn index(usual: u32) -> u32;

    /// How many entries the arrays of a kind have together, inputs and outputs.
    pub(crate) fn total(kind: u32) -> usize;
    /// Copies the inputs of a kind to where they belong.
    #[wasm_bindgen(js_name = "load")]
    pub(crate) fn load_f64(kind: u32, to: &mut [f64]);
    #[wasm_bindgen(js_name = "load")]
    pub(crate) fn load_f32(kind: u32, to: &mut [f32]);
    #[wasm_bindgen(js_name = "load")]
    pub(crate) fn load_u32(kind: u32, to: &mut [u32]);
    #[wasm_bindgen(js_name = "load")]
    pub(crate) fn load_u8(kind: u32, to: &mut [u8]);
    /// Copies the outputs of a kind into fresh arrays.
    #[wasm_bindgen(js_name = "store")]
    pub(crate) fn store_f64(kind: u32, from: &[f64]);
    #[wasm_bindgen(js_name = "store")]
    pub(crate) fn store_f32(kind: u32, from: &[f32]);
    #[wasm_bindgen(js_name = "store")]
    pub(crate) fn store_u8(kind: u32, from: &[u8]);

    /// The next part of the result.
    pub(crate) fn put(number: f64);
    #[wasm_bindgen(js_name = "put")]
    pub(crate) fn text(text: &str);
    #[wasm_bindgen(js_name = "putNull")]
    pub(crate) fn null();
    /// A name and its number.
    #[wasm_bindgen(js_name = "put")]
    pub(crate) fn entry(name: &str, number: f64);
    /// An array whose length only this side knows.
    #[wasm_bindgen(js_name = "putReals")]
    pub(crate) fn reals(from: &[f64]);
    #[wasm_bindgen(js_name = "putCopy")]
    pub(crate) fn doubles(from: &[f64]);
    #[wasm_bindgen(js_name = "putCopy")]
    pub(crate) fn words(from: &[u32]);
    #[wasm_bindgen(js_name = "putCopy")]
    pub(crate) fn flags(from: &[u8]);

    /// Why the call is refused; the first reason counts. An index of −1 is none; of `words` and `expected` one is empty or 0.
    pub(crate) fn refuse(code: &str, parameter: &str, index: f64, words: &str, expected: f64, got: f64, more: f64);

    #[wasm_bindgen(js_name = "Number")]
    pub(crate) fn decimal(text: &str) -> f64;
}
