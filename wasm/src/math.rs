//! The core's own `exp`, `ln` and `sqrt`, whose bits do not depend on the browser as those of `Math.exp` do.

use tokenwise::{math, Either, Real as _};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{call::Call, error::Result, export::export, js, read::number};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("types.ts");

export! {
    CHAIN = 0;
    exp(x:number) -> () => exp, expF64;
    ln(x:number) -> () => ln, lnF64;
    sqrt(x:number) -> () => sqrt, sqrtF64;
}

fn exp(_: &mut Call<'_>) -> Result {
    of(math::exp)
}

fn ln(_: &mut Call<'_>) -> Result {
    of(math::ln)
}

fn sqrt(_: &mut Call<'_>) -> Result {
    of(math::sqrt)
}

fn of(function: fn(Either) -> Either) -> Result {
    js::put(function(Either::narrow(number())).widen());
    Ok(())
}
