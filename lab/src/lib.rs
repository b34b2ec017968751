//! A laboratory: a small transformer learns to add, by PPO and GRPO, with and without the entropy budget of BNTO.
//!
//! candle supplies the network and its backward pass; every token-level number comes from [`tokenwise`].
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "the network promises the same bits on one machine only: candle's products differ between machines"
)]

pub mod adam;
pub mod checkpoint;
pub mod experiment;
pub mod logs;
pub mod model;
pub mod random;
pub mod report;
pub mod settings;
pub mod task;
pub mod timing;
pub mod training;
