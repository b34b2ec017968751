//! How a generic function becomes two JavaScript functions.

/// `name(arguments) => single, double;` exports `name::<f32>` as `single` and `name::<f64>` as `double`;
/// `name(arguments) => single;` exports a function that is not generic.
///
/// The arguments arrive as whatever JavaScript handed over: reading them is where they are checked.
macro_rules! export {
    ($($name:ident($($argument:ident),*) => $($js:ident),+;)*) => {
        $($crate::export::export_one!($name($($argument),*) => $($js),+);)*
    };
}

macro_rules! export_one {
    ($name:ident($($argument:ident),*) => $js:ident) => {
        $crate::export::export_as!($name, $js, $($argument),*);
    };
    ($name:ident($($argument:ident),*) => $single:ident, $double:ident) => {
        $crate::export::export_as!($name::<f32>, $single, $($argument),*);
        $crate::export::export_as!($name::<f64>, $double, $($argument),*);
    };
}

macro_rules! export_as {
    ($function:expr, $js:ident, $($argument:ident),*) => {
        const _: () = {
            #[allow(unreachable_pub, reason = "what JavaScript calls must be public, and no Rust code calls it")]
            #[wasm_bindgen::prelude::wasm_bindgen(js_name = $js, skip_typescript)]
            pub fn exported($($argument: &wasm_bindgen::JsValue),*) -> $crate::error::Result<wasm_bindgen::JsValue> {
                $function($($argument),*)
            }
        };
    };
}

pub(crate) use {export, export_as, export_one};
