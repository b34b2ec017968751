//! The device, with its pool of buffers and its pipelines.

use wgpu::{
    AdapterInfo, Device, DeviceDescriptor, DownlevelFlags, ErrorFilter, Features, Instance, InstanceDescriptor, Queue,
    RequestAdapterOptions,
};

use crate::{
    error::GpuError,
    health::Health,
    kernel::{Cache, MOST_THREADS, STORAGE_BUFFERS, WORKGROUP_BYTES},
    pool::{Pool, WORD},
    recording::Stamps,
};

pub use wgpu::{Backends, Limits, PowerPreference};

/// How [`Gpu::with`] chooses and limits a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuOptions {
    /// Which of several adapters; default: the high-performance one.
    pub power_preference: PowerPreference,
    /// Which graphics APIs to look for an adapter in; default: all.
    pub backends: Backends,
    /// Largest input buffer in bytes, within the device's limit; default 256 MiB. Larger inputs are split, so a smaller
    /// number costs time and saves device memory.
    pub max_buffer_bytes: u64,
    /// Device memory that this crate may hold at once, in bytes; default: no limit of its own. What exceeds it fails as
    /// if the device were out of memory.
    pub max_memory_bytes: u64,
    /// Limits to request; default: those of the adapter.
    pub limits: Option<Limits>,
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self {
            power_preference: PowerPreference::HighPerformance,
            backends: Backends::all(),
            max_buffer_bytes: 256 << 20,
            max_memory_bytes: u64::MAX,
            limits: None,
        }
    }
}

/// A device with its pool of buffers and its pipelines, which are made when they first run. Its methods are the core's
/// kernels, with the same batch, input, config and output, in `f32`; [`Gpu::record`] chains kernels on the device.
///
/// Futures of one device may run concurrently. On native targets they block their thread while the device computes; in
/// the browser they yield.
#[derive(Debug)]
pub struct Gpu {
    pub(crate) device: Device,
    pub(crate) queue: Queue,
    pub(crate) health: Health,
    pub(crate) cache: Cache,
    pub(crate) pool: Pool,
    /// Where the device has timestamps.
    pub(crate) stamps: Option<Stamps>,
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

    /// Requests an adapter and a device.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoAdapter`] if there is none; [`GpuError::Adapter`] if it lacks what the shaders need;
    /// [`GpuError::Device`] if the request fails.
    pub async fn with(options: &GpuOptions) -> Result<Self, GpuError> {
        let descriptor =
            InstanceDescriptor { backends: options.backends, ..InstanceDescriptor::new_without_display_handle() };
        let instance = Instance::new(descriptor);
        let adapter = instance
            .request_adapter(&RequestAdapterOptions {
                power_preference: options.power_preference,
                ..Default::default()
            })
            .await
            .map_err(|error| GpuError::NoAdapter(error.to_string()))?;
        let name = adapter.get_info().name;
        if !adapter.get_downlevel_capabilities().flags.contains(DownlevelFlags::COMPUTE_SHADERS) {
            return Err(GpuError::Adapter { name, what: "compute shaders", needed: 1, limit: 0 });
        }
        let limits = options.limits.clone().unwrap_or_else(|| adapter.limits());
        check_limits(&name, &limits)?;
        let (device, queue) = adapter
            .request_device(&DeviceDescriptor {
                label: Some("tokenwise"),
                required_features: adapter.features() & Features::TIMESTAMP_QUERY,
                required_limits: limits,
                ..Default::default()
            })
            .await
            .map_err(|error| GpuError::Device(error.to_string()))?;
        Self::from_device(device, queue, adapter.get_info(), options)
    }

    /// A device that the caller already has, such as that of a trainer, whose buffers become columns without a copy
    /// ([`Column::from_buffer`](crate::Column::from_buffer)). Its error callbacks are replaced. Of `options` only the
    /// numbers of bytes count.
    ///
    /// # Errors
    ///
    /// [`GpuError::Adapter`] if the limits of the device are below what the shaders need.
    pub fn from_device(
        device: Device,
        queue: Queue,
        info: AdapterInfo,
        options: &GpuOptions,
    ) -> Result<Self, GpuError> {
        let limits = device.limits();
        check_limits(&info.name, &limits)?;
        let health = Health::of(&device);
        let max_buffer_bytes = limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size)
            .min(options.max_buffer_bytes)
            // shaders count in u32
            .min(u32::MAX.into());
        let timestamps = device.features().contains(Features::TIMESTAMP_QUERY);
        let stamps = if timestamps { Some(health.shielded(|| Stamps::new(&device))?) } else { None };
        let (cache, pool) = (Cache::default(), Pool::new(options.max_memory_bytes));
        Ok(Self { device, queue, health, cache, pool, stamps, info, limits, max_buffer_bytes })
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

    /// Most entries of a buffer if `results` such buffers are read back together.
    pub(crate) fn most_entries(&self, results: u64) -> u64 {
        (self.max_buffer_bytes / WORD).min(self.limits.max_buffer_size / (results * WORD))
    }

    /// The device, for buffers of the caller's own.
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The queue of the device.
    pub const fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Bytes of device memory that are kept for reuse.
    pub fn pooled_bytes(&self) -> u64 {
        self.pool.bytes()
    }

    /// Frees the device memory that is kept for reuse.
    pub fn trim(&self) {
        self.pool.renew();
    }

    /// Destroys the device: every later call fails with [`GpuError::Lost`].
    pub fn destroy(&self) {
        self.device.destroy();
    }

    /// Runs `work` and converts wgpu's errors to [`GpuError`].
    pub(crate) async fn caught<T>(&self, work: impl FnOnce() -> Result<T, GpuError>) -> Result<T, GpuError> {
        self.check_health()?;
        let caught = caught(&self.device, &self.health, || self.shielded(work)?).await;
        if caught.is_err() {
            self.pool.renew();
        }
        caught
    }

    /// Runs calls into wgpu. A panic inside them becomes an error, and the device counts as lost.
    pub(crate) fn shielded<T>(&self, work: impl FnOnce() -> T) -> Result<T, GpuError> {
        self.health.shielded(work)
    }

    /// The recorded error. The device-lost callback may still be pending when another error is.
    pub(crate) fn check_health(&self) -> Result<(), GpuError> {
        let Err(error) = self.health.check() else { return Ok(()) };
        self.pool.renew();
        let _ = self.device.poll(wgpu::PollType::Poll);
        self.health.check()?;
        Err(error)
    }

    /// Waits for the submitted work. In the browser the event loop does this.
    pub(crate) fn finish_submitted(&self) -> Result<(), GpuError> {
        #[cfg(not(target_arch = "wasm32"))]
        {
            // wgpu panics if the device is lost while it waits
            if let Err(error) = self.shielded(|| self.device.poll(wgpu::PollType::wait_indefinitely()))? {
                self.health.check()?;
                return Err(GpuError::Device(error.to_string()));
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
    // after an allocation fails, later commands are invalid too: report the first cause
    (done, [memory.pop(), internal.pop(), validation.pop()])
}

async fn caught<T>(
    device: &Device,
    health: &Health,
    work: impl FnOnce() -> Result<T, GpuError>,
) -> Result<T, GpuError> {
    let (done, scopes) = scoped(device, work);
    for scope in scopes {
        if let Some(error) = scope.await {
            // the device-lost callback may still be pending
            let _ = device.poll(wgpu::PollType::Poll);
            health.check()?;
            return Err(error.into());
        }
    }
    done
}

fn check_limits(name: &str, limits: &Limits) -> Result<(), GpuError> {
    let needs = [
        ("threads per workgroup", MOST_THREADS, limits.max_compute_invocations_per_workgroup),
        ("threads along x", MOST_THREADS, limits.max_compute_workgroup_size_x),
        ("storage buffers", STORAGE_BUFFERS, limits.max_storage_buffers_per_shader_stage),
        ("workgroup memory, in bytes", WORKGROUP_BYTES, limits.max_compute_workgroup_storage_size),
    ];
    for (what, needed, limit) in needs {
        if needed > limit {
            return Err(GpuError::Adapter { name: name.into(), what, needed: needed.into(), limit: limit.into() });
        }
    }
    Ok(())
}
