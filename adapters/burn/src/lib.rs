#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! - [`loss()`]: every loss of tokenwise by its name, as a scalar with our closed-form gradient. [`ppo_clip`],
//!   [`value_loss`] and the other functions of [`typed`] are the same with a config of the core.
//! - [`log_probs_and_entropy`]: from logits, by burn's own operations on the device.
//! - [`call`]: every other formula by its name: rewards, advantages, rollout corrections, metrics.
//! - [`control`]: controllers over tensors; those over numbers are in [`tokenwise::control`].
//! - [`surrogate()`]: joins a gradient that was computed elsewhere to a tensor.
//!
//! The names of formulas, inputs, outputs and numbers are those of the core (`tokenwise_catalogue::entries()` lists
//! them), so that a formula added there is available here at once.
//!
//! # Copies
//!
//! burn's tensors are opaque, so the inputs of a formula are copied to the host, one number per token, and the results
//! back to the device. Logits stay on their device. With the feature `wgpu`, `wgpu::OnDevice` computes on burn's wgpu
//! device over the buffers of its tensors.
#![forbid(unsafe_code)]

mod call;
pub mod control;
mod error;
mod inputs;
mod loss;
mod policy;
pub mod typed;
#[cfg(feature = "wgpu")]
pub mod wgpu;

pub use call::{call, Results};
pub use error::{Error, Result};
pub use inputs::{kept, Input, Inputs};
pub use loss::{loss, surrogate, Loss};
pub use policy::{log_probs_and_entropy, LogProbInput, LogProbs};
pub use tokenwise_catalogue::{Domain, Value};
pub use typed::{
    broadcast, cispo, dppo_kl, dppo_tv, dro, entropy_bonus, gae, gmpo, group_relative, gspo, kl_cov, kl_loss, luspo,
    ppo_clip, reinforce, sapo, tis_loss, value_loss, vespo, whiten, Gae, GaeInput, KlInput, PolicyInput, ValueInput,
};
