//! The core's own `exp`, `ln` and `sqrt`, whose bits do not depend on the browser as those of `Math.exp` do.

use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{array::Real, error::Result, export::export, object::number};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.ts");

export! {
    CHAIN = 0;
    exp(x) => exp, expF64;
    ln(x) => ln, lnF64;
    sqrt(x) => sqrt, sqrtF64;
}

fn exp<R: Real>(x: &JsValue) -> Result<JsValue> {
    number("x", x).map(|x| tokenwise::math::exp(R::narrow(x)).widen().into())
}

fn ln<R: Real>(x: &JsValue) -> Result<JsValue> {
    number("x", x).map(|x| tokenwise::math::ln(R::narrow(x)).widen().into())
}

fn sqrt<R: Real>(x: &JsValue) -> Result<JsValue> {
    number("x", x).map(|x| tokenwise::math::sqrt(R::narrow(x)).widen().into())
}
