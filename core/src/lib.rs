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
//! | [`weight`] | tokens, log-probabilities, advantages | how much each token counts |
//! | [`loss`] | log-probabilities, advantages | one loss and its gradient |
//! | [`metric`] | any of these | the numbers a trainer logs |
//! | [`control`] | a mean KL, the entropy used, rewards | the coefficients of the next step |
//!
//! # Example
//!
//! Rewards and values of one response become advantages, and these the clipped loss and its gradient:
//!
//! ```
//! use tokenwise::{advantage::*, loss::*, math, Batch, Layout, Mask};
//!
//! // four tokens; the third came from a tool, not from the policy
//! let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
//! let (mut advantages, mut returns, mut grad) = ([0.0; 4], [0.0; 4], [0.0; 4]);
//! gae(
//!     &batch,
//!     GaeInput { rewards: &[0.0, 0.0, f64::NAN, 1.0], values: &[0.5, 0.5, f64::NAN, 0.5], bootstrap: &[0.0] },
//!     &GaeConfig { lambda: 0.5, ..Default::default() },
//!     GaeOutput { advantages: &mut advantages, returns: &mut returns },
//! )?;
//! assert_eq!(advantages, [0.125, 0.25, 0.0, 0.5]);
//!
//! let log_probs = [-1.0, -1.0, f64::NAN, -1.0 + math::ln(2.0)];      // the last token is now twice as likely
//! let old_log_probs = [-1.0, -1.0, f64::NAN, -1.0];
//! let input = PolicyLossInput::new(&log_probs, &old_log_probs, &advantages);
//! let result = ppo_clip(&batch, input, &PpoConfig { clip_high: 0.25, ..Default::default() }, &mut grad)?;
//! assert_eq!(result.clip_fraction, 1.0 / 3.0);
//! assert_eq!(grad, [-0.125 / 3.0, -0.25 / 3.0, 0.0, 0.0]);           // dropped, and beyond the clip
//! # Ok::<(), tokenwise::Error>(())
//! ```
//!
//! # Conventions
//!
//! * **Shape.** Every kernel is `(domain, input, config, [state or scratch,] output)`. The domain is a batch, groups,
//!   both, or a layout. Two or more input slices are a struct, settings are always a config. Outputs are caller-owned
//!   and written everywhere.
//! * **Scratch.** What it holds before a call does not matter. Its length is given by a `…_scratch_len` function beside
//!   the kernel, for one entry per group by [`group_scratch_len`].
//! * **Growth.** Build configs with `..Default::default()`, inputs with optional slices by `new`; enums and results are
//!   `#[non_exhaustive]`.
//! * **Alignment.** Slot `i` is token `t = i + 1`. *State-aligned* (before the token is generated): values, returns.
//!   *Action-aligned* (the token itself): log-probabilities, scores, rewards, advantages. Raw model output is shifted
//!   by one from both; [`shift`] is the only function that knows it.
//! * **Mask.** *Kept* tokens take part. *Dropped* slots never matter and get 0.
//! * **Errors** are values ([`Error`]); on an error nothing was written. NaN in a kept slot is not an error: it stays
//!   NaN in that token's outputs and in every sum over it.
//! * **Names.** Where frameworks disagree, the config holds an enum; the *Reference* part of each function says who
//!   agrees.
//!
//! # Features
//!
//! A feature may change speed, never bits.
//!
//! * `std` (default): run-time detection of AVX2 and AVX-512 on x86-64.
//! * `rayon`: large batches are split by sequences (logits by tokens) over the threads of rayon's current pool: the
//!   global one, or that of `ThreadPool::install`. Small batches touch no pool. The calling thread never runs other jobs
//!   of the pool while it waits, so a lock may be held during a call; no thread of the pool keeps running after it.
//!   `limit_threads` allows fewer of them. The functions that are split, all others run on the calling thread:
//!   * [`policy`]: `log_probs_and_entropy`, `token_log_probs`, `entropy`, `logits_gradient`;
//!   * [`divergence`]: `kl_estimate`, `kl_gradient`;
//!   * [`advantage`]: `discounted_returns`, `gae`, `gae_decoupled` and the estimators that use them
//!     (`monte_carlo_advantage`, `remax`, `reinforce_plus_plus`), `whiten`, `whiten_in_place`, `broadcast`,
//!     `sequence_sums`;
//!   * [`loss`]: `surrogate`, `ppo_clip`, `cispo`, `tis_loss`, `dppo_tv`, `dppo_kl`, `dro`, `sapo`, `reinforce`;
//!   * [`Moments::of`], [`CoMoments::of`] and the metrics computed from them (`variance`, `correlation`,
//!     `explained_variance`), [`metric::analysis`].
//! * `half`: bf16 and f16 logits, computed in `f32`.
//! * `serde`: configs and states of the controllers can be written and read.
//!
//! # Configs as text
//!
//! With the feature `serde` every config can be written and read, by one rule for JSON, JavaScript and Python:
//!
//! * **Keys** are the fields in snake_case; a binding may turn them into camelCase. **Values** that are names are
//!   kebab-case everywhere: `{"clip_low": 0.1, "divisor": "count-plus-epsilon"}`.
//! * **Missing** fields have their default; in a config inside another one, the default of the outer one. Unknown keys
//!   are refused.
//! * **`null`** is `None`, and also `Unbounded` of [`rollout::LogBound`], `Renormalize` of [`loss::OutsideTopK`] and
//!   `Local` of [`loss::Counts`], whose other variant is written as its value alone.
//! * **Variants with numbers** are objects with the name as `kind`: `{"kind": "truncate", "upper": 2.0}`. Shapes of
//!   their own have [`loss::DualClip`] (`"off"`, `{"negative_only": 3.0}`, `{"both_signs": 3.0}`),
//!   [`advantage::PolicyLambda`] (`0.95`, `{"alpha": 0.05}`), [`control::KlControlConfig`] (a number, or the fields of
//!   either config, told apart by `horizon`), [`loss::Aggregate`]
//!   (`{"mode": "seq-mean-token-sum-norm", "scale": 1024.0}`) and [`loss::BypassConfig`] (`"form"`, and the config of
//!   that loss as `"policy"`).
//! * **Infinite** bounds, where a field may have one, are `"inf"` and `"-inf"`.
//! * **Slices** are not part of the text. The mode `"prompt-mean"` is read without groups and tokens, which kernels
//!   refuse, and a [`rollout::RejectionConfig`] without criteria: the caller fills them in.
//!
//! The format must have objects with keys and keep every bit of a number, such as `serde_json` with its feature
//! `float_roundtrip`.
//!
//! # Scope
//!
//! In scope: formulas over tokens, sequences and groups, their gradients, the metrics trainers log.
//! Out of scope: models, autograd, sampling, optimisers, communication, I/O.
#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![deny(unsafe_code)]

mod entries;
mod error;
mod groups;
mod layout;
mod order;
mod parallel;
mod real;
mod recursion;
mod reduce;
mod simd;
#[cfg(feature = "serde")]
mod spelling;
mod statistics;

pub mod math;

// in the order of the stages
pub mod policy;

pub mod divergence;

pub mod reward;

pub mod advantage;

pub mod rollout;

pub mod weight;

pub mod loss;

pub mod metric;

pub mod control;

pub mod exact;

pub mod profile;

pub use error::{Error, Result};
pub use groups::{group_scratch_len, Groups};
pub use layout::{shift, Batch, Layout, Mask};
#[cfg(feature = "rayon")]
pub use parallel::threads::limit_threads;
pub use profile::named::Profile;
pub use real::Real;
pub use statistics::{CoMoments, Divisor, MeanConfig, Moments, PairInput, Spread};
