//! The formulas of [`tokenwise`] as compute shaders: the core's own batch, config and output types, in `f32`. Logits
//! may also be [`half::f16`] or [`half::bf16`].
//!
//! There are three ways in:
//!
//! * [`Recording`] chains kernels on the device. Its methods take [`Input`]s, host slices or [`Column`]s that are on
//!   the device already, and give columns; one [`Recording::submit`] runs all of them and reads back only what was
//!   asked for. Columns may also be ranges of a trainer's own buffers ([`Column::from_buffer`]), which results can be
//!   copied to ([`Recording::copy_to`]). [`Recording::call`] records any formula by its name.
//! * [`Gpu::call`] runs any formula of the catalogue by its name; what the device cannot answer, the core does.
//!   [`coverage`] lists which formulas have a kernel.
//! * [`Engine`] has the core's own calls and chooses: calls that are too small, or that the device cannot run, go to
//!   the core. Every answer comes with a [`Report`]. [`Engine::calibrate`] measures what is too small on the machine.
//!
//! ```no_run
//! use tokenwise::{advantage::*, loss::PpoConfig, Batch, Layout, Mask};
//! use tokenwise_gpu::{GaeColumns, Gpu, GpuBatch, Input, PolicyLossColumns};
//!
//! # async fn example() -> Result<(), tokenwise_gpu::GpuError> {
//! let gpu = Gpu::new().await?;
//! let keep = [true, true, false, true];
//! let batch = GpuBatch::new(Batch::new(Layout::padded(1, 4)?, Mask::new(&keep))?);
//! let (rewards, values) = ([0.0_f32, 0.0, f32::NAN, 1.0], [0.5_f32, 0.5, f32::NAN, 0.5]);
//! let log_probs = [-1.0_f32; 4];
//! let mut recording = gpu.record();
//! let input = GaeColumns {
//!     rewards: Input::Host(&rewards),
//!     values: Input::Host(&values),
//!     bootstrap: Input::Host(&[0.0]),
//! };
//! let (advantages, _) = recording.gae(&batch, &input, &GaeConfig::default())?;
//! let white = recording.whiten(&batch, &advantages.into(), &WhitenConfig::default())?;
//! let input = PolicyLossColumns {
//!     log_probs: Input::Host(&log_probs),
//!     old_log_probs: Input::Host(&log_probs),
//!     advantages: white.into(),
//!     weights: None,
//! };
//! let result = recording.ppo_clip(&batch, &input, &PpoConfig::default())?;
//! let grad = recording.download(&result.grad);
//! let done = recording.submit().await?;
//! println!("{} {:?} {:?}", done.get(&result.loss).loss, done.floats(grad), done.report());
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//!
//! * **Tolerance, not bits.** Drivers may fuse, reorder and flush to zero; results stay within the table in
//!   [`tolerance`].
//! * **The core's errors.** The core checks every call before any transfer, and nothing is written on an error.
//! * **Dropped slots never matter**, whatever bits they hold.
//! * **The core's special values.** NaN, infinities and values that would overflow are detected by their bits, on the
//!   host or in the shader; no driver arithmetic on them reaches a result. Calls by name are then answered by the core;
//!   a recording marks the tokens as NaN and says so in its [`Report`].
//! * **The same on every run** of one device: sums are pairs of `f32`, added in a fixed order.
//!
//! Natively the device is Vulkan, Metal or DirectX 12; on `wasm32-unknown-unknown` it is WebGPU. Shaders use workgroups
//! of 256 threads and no optional feature, so one set serves both.
//!
//! # Adding a kernel
//!
//! A formula of one token is a WGSL function `fn formula(token: Inputs) -> Outputs` in `shaders/<stage>/` and a
//! `TokenKernel` in `src/<stage>.rs` that names its inputs, outputs, summed terms and settings (`src/token.rs`). A
//! policy loss defines `policy_loss` instead and is a row of the table in `src/loss/policy.rs`. A recursion over a
//! sequence is a `ScanKernel` (`src/scan.rs`). Sums, maxima and minima per sequence or group are `Recording::fold`
//! (`src/fold.rs`); a formula over the scores of groups is a `TokenKernel` over `GpuGroups`, one over the sequences of
//! a batch over `Rows`. Masks are columns of 1 and 0, which become flags in calls by name. Around it:
//!
//! 1. a method of [`Recording`], which checks lengths and config as the core does, then sends inputs, then runs kernels
//!    (the core checks a config best itself, on the two tokens of `metric::two_tokens`);
//! 2. a function that calls it by name, beside it, listed in the `RUNNERS` of its module with its tolerance
//!    ([`tolerance`]) if that is not `TOKEN`; a formula without a kernel has its reason in `src/coverage.rs`;
//! 3. configs in `tests/suite/configs.rs` or `losses.rs` if some of its settings matter together; each by itself is
//!    tried anyway. Every covered formula is held to the core in `f64`, to its special values and its errors
//!    (`call.rs`), to the calls of the golden cases (`golden.rs`), and where nothing is kept or buffers are small
//!    (`edges.rs`).
#![forbid(unsafe_code)]
#![cfg_attr(
    target_arch = "wasm32",
    allow(clippy::arc_with_non_send_sync, reason = "objects of a browser stay on their thread; others need the Arc")
)]

mod batch;
mod calibrate;
mod call;
mod column;
mod context;
mod engine;
mod error;
mod fold;
mod health;
mod kernel;
mod logit;
mod pool;
mod recording;
mod report;
mod rows;
mod scan;
mod segments;
mod sequences;
mod split;
mod thresholds;
mod token;

pub mod coverage;
pub mod tolerance;

mod advantage;
mod credit;
mod divergence;
mod group;
mod kl_weighted;
mod loss;
mod metric;
mod policy;
mod reward;
mod rollout;
mod trace;
mod weight;

pub use batch::{GpuBatch, GpuGroups};
pub use call::Answer;
pub use column::{Column, Format, Input};
pub use context::{Backends, Gpu, GpuOptions, Limits, PowerPreference};
pub use engine::Engine;
pub use error::GpuError;
pub use fold::Fold;
pub use half;
pub use logit::GpuLogit;
pub use policy::{LogProbColumns, LogitColumns};
pub use recording::{Done, Download, Pending, Recording};
pub use report::{Ran, Reason, Report};
pub use thresholds::{Family, Thresholds};
pub use wgpu;

// what the formulas of a stage read and give
pub use {
    advantage::*, credit::*, divergence::*, kl_weighted::*, loss::*, metric::*, reward::*, rollout::*, trace::*,
    weight::*,
};
