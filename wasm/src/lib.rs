//! tokenwise for JavaScript: every formula of the core for `Float32Array`, and with the suffix `F64` for `Float64Array`.
//!
//! A call is the core's call: `(batch, input, config)`, objects for structs, camelCase for snake_case, strings in kebab-case
//! for enums. Typed arrays are copied in and fresh ones handed out, never views into wasm memory: its growth would detach
//! them. A refused call throws an `Error` named `TokenwiseError`.
//!
//! The declarations that TypeScript sees stand in `types.ts` and beside each stage (`policy.ts` … `metric.ts`).
#![forbid(unsafe_code)]

mod array;
mod batch;
mod call;
mod config;
mod error;
mod export;
mod object;

mod advantage;
mod control;
mod divergence;
mod lint;
mod loss;
mod math;
mod metric;
mod policy;
mod profile;
mod reward;
mod rollout;
mod state;

pub use batch::Batch;
pub use control::{DualGame, EntropyBudget, LinearKl};
pub use state::{Histogram, RoleBaselines, RunningMoments};
