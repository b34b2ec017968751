//! Taking numbers, choices and configs out of the queue of a call.
//!
//! The macros say twice what an object holds: here as code, and to `cargo xtask` as a line among the declarations, from which
//! `js/read.js` knows keys, kinds and names. What was not given is the core's own default.

use crate::js;

/// What can stand in a config.
pub(crate) trait Read: Sized {
    /// The next one, or `usual` where none was given.
    fn read(usual: Self) -> Self;
}

/// A config whose defaults are the core's.
#[inline(always)]
pub(crate) fn read<T: Read + Default>() -> T {
    T::read(T::default())
}

/// A number that was given.
pub(crate) fn number() -> f64 {
    js::number(0.0)
}

/// A size that was given.
pub(crate) fn size() -> usize {
    js::index(0) as usize
}

/// A count that was given.
#[inline(never)]
pub(crate) fn count() -> u64 {
    js::number(0.0) as u64
}

/// Whether what follows is there.
pub(crate) fn present() -> bool {
    js::index(0) == 1
}

impl Read for f64 {
    fn read(usual: Self) -> Self {
        js::number(usual)
    }
}

impl Read for u32 {
    fn read(usual: Self) -> Self {
        js::index(usual)
    }
}

impl Read for usize {
    fn read(usual: Self) -> Self {
        js::index(usual as u32) as usize
    }
}

impl Read for u64 {
    #[inline(never)]
    fn read(usual: Self) -> Self {
        js::number(usual as f64) as u64
    }
}

/// A number, or `null` for none.
impl Read for Option<f64> {
    #[inline(never)]
    fn read(usual: Self) -> Self {
        match js::index(0) {
            0 => usual,
            1 => Some(number()),
            _ => None,
        }
    }
}

/// What `cargo xtask` reads of a definition.
macro_rules! declare {
    ($($part:expr),+ $(,)?) => {
        const _: () = {
            #[wasm_bindgen::prelude::wasm_bindgen(typescript_custom_section)]
            const LINE: &str = concat!("/*@ ", $($part),+, " @*/\n");
        };
    };
}

/// Enums without fields: the names of their values, in the order the core has them.
macro_rules! choices {
    ($($type:ident { $($name:literal => $value:ident),+ })+) => {$(
        impl $crate::read::Read for $type {
            #[inline(never)]
            fn read(usual: Self) -> Self {
                match $crate::js::index(usual as u32) {
                    $(index if index == Self::$value as u32 => Self::$value,)+
                    _ => usual,
                }
            }
        }
        const _: () = {
            let (mut index, values) = (0, [$($type::$value as usize),+]);
            while index < values.len() {
                assert!(values[index] == index);
                index += 1;
            }
        };
        declare!("choice ", stringify!($type), " ", concat!($("|", $name),+));
    )+};
}

/// Plain structs, every field optional: `field: kind`.
macro_rules! configs {
    ($($type:ident { $($field:ident: $kind:ident),+ $(,)? })+) => {$(
        impl $crate::read::Read for $type {
            fn read(usual: Self) -> Self {
                Self { $($field: $crate::read::Read::read(usual.$field)),+ }
            }
        }
        declare!("config ", stringify!($type), " ", concat!($(",", stringify!($field), "?:", stringify!($kind)),+));
    )+};
}

/// Configs of losses, which have an aggregation as their last field.
macro_rules! loss_configs {
    ($($type:ident { $($field:ident: $kind:ident),* $(,)? })+) => {$(
        impl<'a> $crate::read::ReadLoss<'a> for $type<'a> {
            fn read(call: &mut $crate::call::Call<'a>) -> Self {
                let usual = Self::default();
                Self {
                    $($field: $crate::read::Read::read(usual.$field),)*
                    aggregate: call.aggregate(usual.aggregate),
                }
            }
        }
        declare!(
            "config ", stringify!($type), " ", concat!($(",", stringify!($field), "?:", stringify!($kind)),*),
            ",aggregate?:aggregate"
        );
    )+};
}

/// A config with an aggregation.
pub(crate) trait ReadLoss<'a>: Sized {
    /// The next one.
    fn read(call: &mut crate::call::Call<'a>) -> Self;
}

/// Enums whose variants have numbers: `index "kind" (numbers) => value`.
macro_rules! tagged {
    ($($type:ident { $($index:literal $name:literal ($($field:ident),*) => $value:expr),+ $(,)? })+) => {$(
        impl $crate::read::Read for $type {
            #[inline(never)]
            fn read(usual: Self) -> Self {
                match $crate::js::index(u32::MAX) {
                    $($index => {
                        $(let $field = $crate::read::number();)*
                        $value
                    })+
                    _ => usual,
                }
            }
        }
        declare!(
            "tagged ", stringify!($type), " ",
            concat!($(",", $name, "{", concat!($(stringify!($field), ":number "),*), "}"),+)
        );
    )+};
}
