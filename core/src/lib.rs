//! Token-level reinforcement-learning formulas for language models: pure functions over slices, with explicit masks and
//! closed-form gradients, the same bits on every machine, and no panic on bad input.
//!
//! Data flows through the stages in the order of the modules below:
//!
//! | stage | reads | writes |
//! | --- | --- | --- |
//! | [`policy`] | logits, tokens | log-probabilities, entropy, and the gradient back to the logits |
//! | [`divergence`] | log-probabilities of policy and reference | KL per token |
//! | [`reward`] | scores, KL | token rewards |
//! | [`advantage`] | rewards, values | advantages, returns |
//! | [`rollout`] | log-probabilities of trainer and sampler | importance weights, masks |
//! | [`loss`] | log-probabilities, advantages | one loss and its gradient |
//! | [`metric`] | any of these | the numbers a trainer logs |
//! | [`control`] | a mean KL, the entropy used, rewards | the coefficients of the next step |
//!
//! # Conventions
//!
//! * **Shape.** Every kernel is `(batch, input, config, output)`. Outputs are caller-owned and written everywhere.
//! * **Alignment.** Slot `i` is token `t = i + 1`. *State-aligned* (before the token is generated): values, returns.
//!   *Action-aligned* (the token itself): log-probabilities, scores, rewards, advantages. Raw model output is shifted by one
//!   from both; [`shift`] is the only function that knows it.
//! * **Mask.** *Kept* tokens take part. *Dropped* slots never matter and get 0.
//! * **Errors** are values ([`Error`]); on an error nothing was written. NaN in a kept slot is not an error: it stays NaN in
//!   that token's outputs and in every sum over it.
//! * **Names.** Where frameworks disagree, the config holds an enum; the *Reference* part of each function says who agrees.
//!
//! # Scope
//!
//! In scope: formulas over tokens, sequences and groups, their gradients, the metrics trainers log.
//! Out of scope: models, autograd, sampling, optimisers, communication, I/O.
#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![deny(unsafe_code)]

#[cfg(compact)]
extern crate alloc;

mod error;
mod groups;
mod layout;
mod order;
mod parallel;
mod real;
mod recursion;
mod reduce;
mod simd;
mod statistics;

pub mod math;

// in the order of the stages
pub mod policy;

pub mod divergence;

pub mod reward;

pub mod advantage;

pub mod rollout;

pub mod loss;

pub mod metric;

pub mod control;

pub mod profile;

pub use error::{Error, Result};
pub use groups::Groups;
pub use layout::{shift, Batch, Layout, Mask};
pub use profile::Profile;
#[cfg(feature = "small")]
pub use real::Either;
pub use real::Real;
pub use statistics::{CoMoments, Divisor, Moments, Spread};
