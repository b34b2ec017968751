//! How a Rust function becomes one or two JavaScript functions.
//!
//! The module has one entry for all of them: a function of JavaScript that the generator makes for itself costs ten times the
//! code of a row in a table. `cargo xtask` writes the JavaScript functions, from the lines that `export!` leaves among the
//! declarations; what stands in `js` reads arguments and names results by what the lines say.

use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{run, Call},
    error::Result,
};

/// A function that takes its arguments from the queue and puts its results there.
pub(crate) type Entry = fn(&mut Call<'_>) -> Result;

/// Calls a function: `id` is its place in all tables together, and whether numbers are `f64`.
#[wasm_bindgen(skip_typescript)]
#[allow(unreachable_pub, reason = "what JavaScript calls must be public, and no Rust code calls it")]
pub fn invoke(id: usize) {
    let mut row = id >> 1;
    for table in crate::TABLES {
        if let Some(entry) = table.get(row) {
            return run(id & 1 == 0, &mut |call| entry(call));
        }
        row -= table.len();
    }
}

/// `TABLE = number;` and then `name(arguments) -> (results) => single, double;` exports a function for both precisions,
/// `=> single;` one that has none to choose. How arguments and results are written stands in `js/call.js`.
macro_rules! export {
    ($(#[$attribute:meta])? $table:ident = $number:literal;
        $($name:ident($($arguments:tt)*) -> ($($results:tt)*) => $($js:ident),+;)*) => {
        $(#[$attribute])?
        pub(crate) const $table: &[$crate::export::Entry] = &[$($name),*];
        $(#[$attribute])?
        const _: () = {
            #[wasm_bindgen::prelude::wasm_bindgen(typescript_custom_section)]
            const ROWS: &str = concat!($(
                "/*@ row ", $number, " ", concat!($(",", stringify!($js)),+), " (", stringify!($($arguments)*), ") (",
                stringify!($($results)*), ") @*/\n",
            )*);
        };
    };
}

pub(crate) use export;
