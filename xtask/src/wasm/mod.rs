//! `cargo xtask wasm`: compiles `tokenwise-wasm`, writes its JavaScript, and makes the npm package of both.

mod build;
mod facade;
mod package;

pub(crate) use build::{build, wasm, Host, Options, Part, Simd};
pub(crate) use facade::has_precision;
