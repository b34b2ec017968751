//! The core's own `exp`, `ln` and `sqrt`, whose bits do not depend on the browser as those of `Math.exp` do.

use tokenwise::math;
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use crate::{error::Result, read::number};

macro_rules! functions {
    ($($function:path, $single:ident $double:ident $js:literal;)*) => {$(
        /// In `f32`.
        #[wasm_bindgen(skip_typescript)]
        pub fn $single(x: &JsValue) -> Result<f64> {
            Ok($function(number("x", x)? as f32).into())
        }

        /// In `f64`.
        #[wasm_bindgen(js_name = $js, skip_typescript)]
        pub fn $double(x: &JsValue) -> Result<f64> {
            Ok($function(number("x", x)?))
        }
    )*};
}

functions! {
    math::exp, exp exp_f64 "expF64";
    math::ln, ln ln_f64 "lnF64";
    math::sqrt, sqrt sqrt_f64 "sqrtF64";
}
