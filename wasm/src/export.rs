//! How a Rust function becomes one or two JavaScript functions.
//!
//! The module has one entry for all of them: a function of JavaScript that the glue makes for itself costs ten times the code of
//! a row in a table. `cargo xtask` writes the JavaScript functions, from the lines that `export!` leaves among the declarations.

use tokenwise::Either;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::error::Result;

/// The most arguments of a function.
pub(crate) const ARGUMENTS: usize = 5;

/// A function that reads its arguments from a list; what was not handed over is `undefined` there.
pub(crate) type Entry = fn(&[JsValue; ARGUMENTS]) -> Result<JsValue>;

/// Calls a function: `id` is the number of its table, its row there, and whether numbers are `f64`.
#[wasm_bindgen(skip_typescript)]
#[allow(
    unreachable_pub,
    private_interfaces,
    reason = "what JavaScript calls must be public, and no Rust code calls it"
)]
pub fn invoke(id: usize, a: JsValue, b: JsValue, c: JsValue, d: JsValue, e: JsValue) -> Result<JsValue> {
    let entry = crate::TABLES.get(id >> 8).and_then(|table| table.get((id & 0xff) >> 1));
    // the getters of an input may call another function, which leaves the choice as it was
    let before = Either::choose(id & 1 == 0);
    let result = entry.map_or(Ok(JsValue::UNDEFINED), |entry| entry(&[a, b, c, d, e]));
    Either::choose(before);
    result
}

/// `TABLE = number;` and then `name(arguments) => single, double;` exports `name::<Either>` as two functions;
/// `name(arguments) => single;` exports a function that is not generic.
///
/// The arguments arrive as whatever JavaScript handed over: reading them is where they are checked.
macro_rules! export {
    ($(#[$attribute:meta])? $table:ident = $number:literal; $($name:ident($($argument:ident),*) => $($js:ident),+;)*) => {
        $(#[$attribute])?
        pub(crate) const $table: &[$crate::export::Entry] = &[$(
            |[$($argument,)* ..]| $crate::export::instance!($name, $($js),+)($($argument),*),
        )*];
        $(#[$attribute])?
        const _: () = {
            #[wasm_bindgen::prelude::wasm_bindgen(typescript_custom_section)]
            const NAMES: &str = concat!($(
                "//@ ", $number, " ", stringify!($($js),+), " (", stringify!($($argument),*), ")\n",
            )*);
        };
    };
}

macro_rules! instance {
    ($name:ident, $js:ident) => {
        $name
    };
    ($name:ident, $single:ident, $double:ident) => {
        $name::<tokenwise::Either>
    };
}

pub(crate) use {export, instance};
