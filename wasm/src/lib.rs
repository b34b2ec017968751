//! tokenwise for JavaScript: every formula of the core for `Float32Array`, and with the suffix `F64` for `Float64Array`.
//!
//! A call is the core's call: `(batch, input, config)`, objects for structs, camelCase for snake_case, strings in kebab-case
//! for enums. Typed arrays are copied in and fresh ones handed out, never views into wasm memory: its growth would detach
//! them. A refused call throws an `Error` named `TokenwiseError`.
//!
//! The declarations that TypeScript sees stand in `types.ts` and beside each stage (`policy.ts` … `metric.ts`).
#![cfg_attr(target_arch = "wasm32", no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports, reason = "the chain is a part of the whole"))]

extern crate alloc;

/// A table of the whole package; empty in the build of the chain.
macro_rules! rest {
    ($table:path) => {{
        #[cfg(feature = "full")]
        const TABLE: &[export::Entry] = $table;
        #[cfg(not(feature = "full"))]
        const TABLE: &[export::Entry] = &[];
        TABLE
    }};
}

#[macro_use]
mod read;

mod call;
mod config;
mod error;
mod export;
mod js;
mod put;

mod advantage;
#[cfg(feature = "full")]
mod control;
mod divergence;
mod inspect;
#[cfg(feature = "full")]
mod lint;
mod loss;
mod math;
mod metric;
mod policy;
#[cfg(feature = "full")]
mod profile;
mod reward;
#[cfg(feature = "full")]
mod rollout;
#[cfg(feature = "full")]
mod state;

#[cfg(feature = "full")]
pub use state::State;

/// Every function, in the order of the numbers that the tables name.
const TABLES: &[&[export::Entry]] = &[
    math::CHAIN,
    policy::CHAIN,
    rest!(policy::REST),
    divergence::CHAIN,
    rest!(divergence::REST),
    reward::CHAIN,
    rest!(reward::REST),
    advantage::CHAIN,
    rest!(advantage::REST),
    rest!(advantage::trace::REST),
    rest!(advantage::group::REST),
    rest!(rollout::REST),
    rest!(loss::REST),
    loss::policy::CHAIN,
    rest!(loss::policy::REST),
    rest!(loss::distill::REST),
    rest!(loss::dual_game::REST),
    metric::CHAIN,
    rest!(metric::REST),
    rest!(metric::distribution::REST),
    rest!(metric::sets::REST),
    rest!(control::REST),
    rest!(profile::REST),
    rest!(lint::REST),
    inspect::CHAIN,
];

/// A list of what is free: a call has a few arrays, which go at its end.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static MEMORY: lol_alloc::LockedAllocator<lol_alloc::FreeListAllocator> =
    lol_alloc::LockedAllocator::new(lol_alloc::FreeListAllocator::new());

/// Nothing here panics but for a mistake of ours, which then traps; the text would cost more than all messages together.
#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn trap(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
