//! tokenwise for JavaScript: every formula of the catalogue for `Float32Array`, and with the suffix `F64` for
//! `Float64Array`.
//!
//! A call is the core's call: `(batch, input, config)`, objects for structs, camelCase for snake_case, strings in
//! kebab-case for enums. Typed arrays are copied in and fresh ones handed out, never views into wasm memory: its growth
//! would detach them. A refused call throws a `TokenwiseError`.
//!
//! [`Call`] runs any formula by its name; what has a state or a shape of its own has a class or function here. The
//! names that JavaScript sees (`gae`, `gaeF64`) and the checks of objects that were freed stand in `wasm/js` and in
//! what xtask writes from the catalogue.
#![forbid(unsafe_code)]

mod batch;
mod call;
mod error;
pub mod math;
mod names;
pub mod profile;
mod read;
mod rows;
mod spare;
mod value;
mod write;

#[cfg(feature = "full")]
pub mod advantage;
#[cfg(feature = "full")]
pub mod control;
#[cfg(feature = "gpu-shim")]
pub mod gpu;
#[cfg(feature = "full")]
pub mod lint;
#[cfg(feature = "full")]
pub mod metric;
#[cfg(feature = "full")]
pub mod rollout;

pub use batch::Batch;
pub use call::Call;
#[cfg(feature = "gpu-shim")]
pub use gpu::Gpu;
#[cfg(feature = "full")]
pub use {
    advantage::RoleBaselines,
    control::{DualGame, EntropyBudget, LinearKl},
    metric::{Histogram, RunningMoments},
};
