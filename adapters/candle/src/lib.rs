#![doc = include_str!("../README.md")]
//!
//! # The parts
//!
//! - [`log_probs_and_entropy`], [`token_log_probs`]: from logits, with a gradient to the logits.
//! - [`loss()`]: every loss of tokenwise by its name, as a scalar with our closed-form gradient. [`ppo_clip`],
//!   [`value_loss`] and the other functions of [`typed`] are the same with a config of the core.
//! - [`call`]: every other formula by its name: rewards, advantages, rollout corrections, metrics.
//! - [`control`]: controllers over tensors; those over numbers are in [`tokenwise::control`].
//! - [`surrogate()`]: joins a gradient that was computed elsewhere to a tensor, on any device.
//!
//! The names of formulas, inputs, outputs and numbers are those of the core (`tokenwise_catalogue::entries()` lists
//! them), so that a formula added there is available here at once.
//!
//! # Copies
//!
//! A contiguous CPU tensor is read where it is. Any other layout is copied once, a tensor on another device is copied
//! to the host. Results on the CPU become tensors without a copy. bf16 and f16 log-probabilities, values and rewards
//! are computed in f32, and gradients are converted back; bf16 and f16 logits are read as they are.
//!
//! # Other devices
//!
//! The gradient of a loss with respect to log-probabilities or values is small: it is computed on the host and joined
//! to the tensor by the [`surrogate()`], whose value is the loss. Logits stay on their device:
//! [`log_probs_and_entropy`] then uses candle's own operations.
#![forbid(unsafe_code)]

mod call;
pub mod control;
mod error;
mod inputs;
mod loss;
mod policy;
mod read;
pub mod typed;

pub use call::{call, Results};
pub use error::{Error, Result};
pub use inputs::{kept, Input, Inputs};
pub use loss::{loss, surrogate, Loss};
pub use policy::{log_probs_and_entropy, token_log_probs, LogProbInput, LogProbs};
pub use tokenwise_catalogue::{Domain, Value};
pub use typed::{
    broadcast, cispo, dppo_kl, dppo_tv, dro, entropy_bonus, gae, gmpo, group_relative, gspo, kl_cov, kl_loss, luspo,
    ppo_clip, reinforce, sapo, tis_loss, value_loss, vespo, whiten, Gae, GaeInput, KlInput, PolicyInput, ValueInput,
};
