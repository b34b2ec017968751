//! The front that chooses between the GPU and the core.

use tokenwise::{
    advantage::{gae, GaeConfig, GaeInput, GaeOutput},
    policy::{log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
    Batch,
};
use wgpu::DeviceType;

use crate::{context::Gpu, error::GpuError};

/// Who computed.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// The GPU, within [`tolerance`](crate::tolerance).
    Gpu,
    /// The core, with its bits, and why.
    Core(Reason),
}

/// Why the core computed.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// There is no device.
    NoGpu(GpuError),
    /// The batch is smaller than [`Thresholds`] asks for.
    Small {
        /// Work of the batch, in the unit of the threshold.
        work: u64,
        /// The threshold.
        threshold: u64,
    },
    /// The device could not: lost, out of memory, or a limit exceeded.
    Failed(GpuError),
}

/// The work from which on a batch goes to the GPU.
///
/// The defaults are set by counting, not measured on your machine: a call costs a few tenths of a millisecond whatever its
/// size, and every number crosses the bus once. Logits are then cheaper on the GPU from about a million on. The recursion of
/// `gae` costs the core about as much as the bus costs the GPU, so it goes over only where the core's one thread is held up
/// for milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Kept tokens × vocabulary; default 2²⁰.
    pub logits: u64,
    /// Token slots of a recursion; default 2²².
    pub tokens: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { logits: 1 << 20, tokens: 1 << 22 }
    }
}

/// The core's kernels, on the GPU where that pays and works, otherwise on the core; each call says which.
///
/// # Example
///
/// ```
/// use tokenwise::{policy::*, Batch, Layout, Mask};
/// use tokenwise_gpu::{GpuError, Ran, Reason, Shim};
///
/// # pollster::block_on(async {
/// let shim = Shim::without_gpu();                 // or `Shim::new().await`
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let (mut log_probs, mut entropy) = ([9.0; 2], [9.0; 2]);
/// let ran = shim
///     .log_probs_and_entropy(
///         &batch,
///         LogProbInput { logits: &[0.0, f32::NEG_INFINITY, f32::NAN, f32::NAN], vocab: 2, tokens: &[0, 99] },
///         &PolicyConfig::default(),
///         LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy },
///     )
///     .await?;
/// assert_eq!((log_probs, entropy), ([0.0, 0.0], [0.0, 0.0]));
/// assert!(matches!(ran, Ran::Core(Reason::NoGpu(GpuError::NoAdapter(_)))));
/// # Ok::<(), tokenwise::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Shim {
    gpu: Result<Gpu, GpuError>,
    thresholds: Thresholds,
}

impl Shim {
    /// Looks for a GPU. Never fails: without one, everything runs on the core. An adapter that is software computes on the same
    /// processor as the core, only slower, and so counts as none; [`Shim::over`] takes it nevertheless.
    pub async fn new() -> Self {
        let gpu = Gpu::new().await.and_then(|gpu| match gpu.info().device_type {
            DeviceType::Cpu => Err(GpuError::NoAdapter(format!("{} is a software adapter", gpu.info().name))),
            _ => Ok(gpu),
        });
        Self { gpu, thresholds: Thresholds::default() }
    }

    /// Everything on the core.
    pub fn without_gpu() -> Self {
        let why = GpuError::NoAdapter("none was asked for".into());
        Self { gpu: Err(why), thresholds: Thresholds::default() }
    }

    /// Over this device, whatever it is.
    pub fn over(gpu: Gpu) -> Self {
        Self { gpu: Ok(gpu), thresholds: Thresholds::default() }
    }

    /// The same with other thresholds.
    #[must_use]
    pub fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// The device, or why there is none.
    ///
    /// # Errors
    ///
    /// What [`Gpu::new`] said.
    pub const fn gpu(&self) -> Result<&Gpu, &GpuError> {
        self.gpu.as_ref()
    }

    /// The device if the work is worth it.
    fn choose(&self, work: u64, threshold: u64) -> Result<&Gpu, Reason> {
        let gpu = self.gpu.as_ref().map_err(|error| Reason::NoGpu(error.clone()))?;
        if work < threshold {
            return Err(Reason::Small { work, threshold });
        }
        Ok(gpu)
    }

    /// [`Gpu::log_probs_and_entropy`] from [`Thresholds::logits`] on, otherwise the core's.
    ///
    /// # Errors
    ///
    /// The core's own. A failure of the device is none: the core computes, and [`Ran`] says so.
    pub async fn log_probs_and_entropy(
        &self,
        batch: &Batch<'_>,
        input: LogProbInput<'_, f32>,
        config: &PolicyConfig,
        output: LogProbOutput<'_, f32>,
    ) -> tokenwise::Result<Ran> {
        let work = (batch.kept() as u64).saturating_mul(input.vocab as u64);
        let LogProbOutput { log_probs, entropy } = output;
        let reason = match self.choose(work, self.thresholds.logits) {
            Ok(gpu) => {
                let output = LogProbOutput { log_probs: &mut *log_probs, entropy: &mut *entropy };
                match gpu.log_probs_and_entropy(batch, input, config, output).await {
                    Ok(()) => return Ok(Ran::Gpu),
                    Err(GpuError::Core(error)) => return Err(error),
                    Err(error) => Reason::Failed(error),
                }
            }
            Err(reason) => reason,
        };
        log_probs_and_entropy(batch, input, config, LogProbOutput { log_probs, entropy })?;
        Ok(Ran::Core(reason))
    }

    /// [`Gpu::gae`] from [`Thresholds::tokens`] on, otherwise the core's.
    ///
    /// # Errors
    ///
    /// The core's own. A failure of the device is none: the core computes, and [`Ran`] says so.
    pub async fn gae(
        &self,
        batch: &Batch<'_>,
        input: GaeInput<'_, f32>,
        config: &GaeConfig,
        output: GaeOutput<'_, f32>,
    ) -> tokenwise::Result<Ran> {
        let GaeOutput { advantages, returns } = output;
        let reason = match self.choose(batch.tokens() as u64, self.thresholds.tokens) {
            Ok(gpu) => {
                let output = GaeOutput { advantages: &mut *advantages, returns: &mut *returns };
                match gpu.gae(batch, input, config, output).await {
                    Ok(()) => return Ok(Ran::Gpu),
                    Err(GpuError::Core(error)) => return Err(error),
                    Err(error) => Reason::Failed(error),
                }
            }
            Err(reason) => reason,
        };
        gae(batch, input, config, GaeOutput { advantages, returns })?;
        Ok(Ran::Core(reason))
    }
}
