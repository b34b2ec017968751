//! The adapter against burn's own autodiff, and what it promises about masks and errors.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests: a failure is a panic, and the plain formulas use plain functions"
)]

mod embedding;
mod errors;
mod gradients;
#[path = "../../../plain/mod.rs"]
mod plain;
mod policy;
mod stages;
mod tape;
#[cfg(feature = "wgpu")]
mod wgpu;
