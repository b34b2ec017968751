//! The formulas of [`tokenwise`] as compute shaders: the core's own batch, input, config and output types, in `f32`.
//!
//! | stage | on the GPU |
//! | --- | --- |
//! | policy | [`Gpu::log_probs_and_entropy`] |
//! | advantage | [`Gpu::gae`] |
//!
//! [`Gpu`] is the device itself: a call runs there or fails. [`Shim`] chooses: what is too small, or what the device cannot do,
//! runs on the core, and every call says which of the two ran.
//!
//! ```no_run
//! use tokenwise::{advantage::*, Batch, Layout, Mask};
//!
//! # async fn example() -> Result<(), tokenwise::Error> {
//! let shim = tokenwise_gpu::Shim::new().await;
//! let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
//! let (mut advantages, mut returns) = ([9.0; 4], [9.0; 4]);
//! let ran = shim
//!     .gae(
//!         &batch,
//!         GaeInput { rewards: &[0.0, 0.0, f32::NAN, 1.0], values: &[0.5, 0.5, f32::NAN, 0.5], bootstrap: &[0.0] },
//!         &GaeConfig { lambda: 0.5, ..Default::default() },
//!         GaeOutput { advantages: &mut advantages, returns: &mut returns },
//!     )
//!     .await?;
//! println!("{ran:?}");
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//!
//! * **Tolerance, not bits.** Drivers may fuse, reorder and flush; results stay within the table in [`tolerance`].
//! * **Errors are the core's.** Every call is checked by the core before a byte moves, and nothing is written on an error.
//! * **Dropped slots never matter**, whatever bits they hold.
//! * **Special values are the core's.** NaN, infinities and what would overflow are told apart by their bits, on the host or in
//!   the shader, and no driver's arithmetic on them reaches a result.
//!
//! Natively the device is Vulkan, Metal or DirectX 12; on `wasm32-unknown-unknown` it is WebGPU. Shaders use workgroups of 256
//! threads and no optional feature, so one set serves both.
#![forbid(unsafe_code)]

mod buffers;
mod context;
mod error;
mod health;
mod pipeline;
mod segments;
mod shim;

pub mod tolerance;

mod advantage;
mod policy;

pub use context::{Gpu, GpuOptions, PowerPreference};
pub use error::GpuError;
pub use shim::{Ran, Reason, Shim, Thresholds};
pub use wgpu;
