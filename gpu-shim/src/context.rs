//! The device: made once, with all pipelines, then passed the calls.

use wgpu::{
    AdapterInfo, Device, DeviceDescriptor, ErrorFilter, Instance, InstanceDescriptor, Limits, Queue,
    RequestAdapterOptions,
};

use crate::{
    buffers::WORD,
    error::GpuError,
    health::Health,
    pipeline::{Kernels, STORAGE_BUFFERS, THREADS, WORKGROUP_BYTES},
};

pub use wgpu::PowerPreference;

/// How [`Gpu::with`] chooses and limits a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuOptions {
    /// Which of several adapters; default: the fast one.
    pub power_preference: PowerPreference,
    /// Bytes of the largest input buffer, if the device allows as many; default 256 MiB. What does not fit into one goes in several
    /// steps, so a smaller number costs time and saves device memory.
    pub max_buffer_bytes: u64,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self { power_preference: PowerPreference::HighPerformance, max_buffer_bytes: 256 << 20 }
    }
}

/// A device with its pipelines. Its methods are the core's kernels: the same batch, input, config and output, in `f32`.
///
/// Futures of one device may run at the same time. Natively they block their thread while the device computes; in the
/// browser they yield to it.
#[derive(Debug)]
pub struct Gpu {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
    pub(crate) health: Health,
    pub(crate) kernels: Kernels,
    info: AdapterInfo,
    limits: Limits,
    max_buffer_bytes: u64,
}

impl Gpu {
    /// The device that [`GpuOptions::default`] chooses.
    ///
    /// # Errors
    ///
    /// As [`Gpu::with`].
    ///
    /// # Example
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), tokenwise_gpu::GpuError> {
    /// let gpu = tokenwise_gpu::Gpu::new().await?;
    /// println!("{}", gpu.info().name);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn new() -> Result<Self, GpuError> {
        Self::with(&GpuOptions::default()).await
    }

    /// Asks for an adapter and a device, and makes all pipelines.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoAdapter`] if there is none; [`GpuError::Device`] if it refuses; [`GpuError::Limit`] if it offers less than
    /// the shaders need; [`GpuError::Validation`] if its driver refuses a shader.
    pub async fn with(options: &GpuOptions) -> Result<Self, GpuError> {
        let instance = Instance::new(InstanceDescriptor::new_without_display_handle());
        let adapter = instance
            .request_adapter(&RequestAdapterOptions {
                power_preference: options.power_preference,
                ..Default::default()
            })
            .await
            .map_err(|error| GpuError::NoAdapter(error.to_string()))?;
        let limits = adapter.limits();
        check_limits(&limits)?;
        let (device, queue) = adapter
            .request_device(&DeviceDescriptor {
                label: Some("tokenwise"),
                required_limits: limits.clone(),
                ..Default::default()
            })
            .await
            .map_err(|error| GpuError::Device(error.to_string()))?;
        let health = Health::of(&device);
        let kernels = caught(&device, &health, || Kernels::new(&device)).await?;
        let max_buffer_bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
            .min(options.max_buffer_bytes)
            // shaders count in u32
            .min(u32::MAX.into());
        Ok(Self { device, queue, health, kernels, info: adapter.get_info(), limits, max_buffer_bytes })
    }

    /// The adapter's name, kind and driver.
    pub const fn info(&self) -> &AdapterInfo {
        &self.info
    }

    /// The device's limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of the largest input buffer: the device's limit, or the one of [`GpuOptions`] if that is smaller.
    pub const fn max_buffer_bytes(&self) -> u64 {
        self.max_buffer_bytes
    }

    /// Most entries of a buffer, if `results` such buffers are read back as one.
    pub(crate) fn most_entries(&self, results: u64) -> u64 {
        (self.max_buffer_bytes / WORD).min(self.limits.max_buffer_size / (results * WORD))
    }

    /// Destroys the device: every later call fails with [`GpuError::Lost`].
    pub fn destroy(&self) {
        self.device.destroy();
    }

    /// Runs `work` so that wgpu's errors become ours.
    pub(crate) async fn caught<T>(&self, work: impl FnOnce() -> T) -> Result<T, GpuError> {
        self.health.check()?;
        caught(&self.device, &self.health, work).await
    }

    /// Waits until the submitted work is done. In the browser the event loop does that.
    pub(crate) fn finish_submitted(&self) -> Result<(), GpuError> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            use std::panic::{catch_unwind, AssertUnwindSafe};
            // wgpu panics if the device is lost while it waits
            let waited = catch_unwind(AssertUnwindSafe(|| self.device.poll(wgpu::PollType::wait_indefinitely())));
            match waited {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    self.health.check()?;
                    return Err(GpuError::Device(error.to_string()));
                }
                Err(_) => self.health.lose("lost while waiting for it"),
            }
        }
        self.health.check()
    }
}

/// Error scopes belong to the thread that opened them, so they are closed before the first await.
fn scoped<T>(
    device: &Device,
    work: impl FnOnce() -> T,
) -> (T, [impl std::future::Future<Output = Option<wgpu::Error>>; 3]) {
    let validation = device.push_error_scope(ErrorFilter::Validation);
    let internal = device.push_error_scope(ErrorFilter::Internal);
    let memory = device.push_error_scope(ErrorFilter::OutOfMemory);
    let done = work();
    // what failed for want of memory is not valid afterwards: the first cause comes first
    (done, [memory.pop(), internal.pop(), validation.pop()])
}

async fn caught<T>(device: &Device, health: &Health, work: impl FnOnce() -> T) -> Result<T, GpuError> {
    let (done, scopes) = scoped(device, work);
    for scope in scopes {
        if let Some(error) = scope.await {
            // the callback of a lost device may still be waiting to be called
            let _ = device.poll(wgpu::PollType::Poll);
            health.check()?;
            return Err(error.into());
        }
    }
    Ok(done)
}

fn check_limits(limits: &Limits) -> Result<(), GpuError> {
    let needs = [
        ("threads per workgroup", THREADS, limits.max_compute_invocations_per_workgroup),
        ("threads along x", THREADS, limits.max_compute_workgroup_size_x),
        ("storage buffers", STORAGE_BUFFERS, limits.max_storage_buffers_per_shader_stage),
        ("workgroup memory, in bytes", WORKGROUP_BYTES, limits.max_compute_workgroup_storage_size),
    ];
    for (what, needed, limit) in needs {
        if needed > limit {
            return Err(GpuError::Limit { what, needed: needed.into(), limit: limit.into() });
        }
    }
    Ok(())
}
