//! The device of the tests, created once.

use std::{io::Write, sync::OnceLock};

use tokenwise_gpu::{
    wgpu::{DeviceDescriptor, Instance, InstanceDescriptor, RequestAdapterOptions},
    Gpu, GpuOptions,
};

/// The device, or `None` with a message that the test harness does not capture. In CI a missing adapter is a failure.
pub(crate) fn gpu() -> Option<&'static Gpu> {
    static GPU: OnceLock<Option<Gpu>> = OnceLock::new();
    GPU.get_or_init(|| made(&GpuOptions::default())).as_ref()
}

/// A device whose buffers hold at most this many bytes.
pub(crate) fn small_gpu(max_buffer_bytes: u64) -> Option<Gpu> {
    made(&GpuOptions { max_buffer_bytes, ..Default::default() })
}

pub(crate) fn made(options: &GpuOptions) -> Option<Gpu> {
    match pollster::block_on(Gpu::with(options)) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            assert!(!std::env::var("CI").is_ok_and(|ci| ci == "true"), "CI must have an adapter: {error}");
            let _ = writeln!(std::io::stderr(), "SKIPPED, the shaders were not tested: {error}");
            None
        }
    }
}

/// A device that the caller made, as a trainer does, without any optional feature.
pub(crate) fn trainers_gpu() -> Option<Gpu> {
    gpu()?;
    pollster::block_on(async {
        let instance = Instance::new(InstanceDescriptor::new_without_display_handle());
        let adapter = instance.request_adapter(&RequestAdapterOptions::default()).await.unwrap();
        let (device, queue) = adapter.request_device(&DeviceDescriptor::default()).await.unwrap();
        Some(Gpu::from_device(device, queue, adapter.get_info(), &GpuOptions::default()).unwrap())
    })
}

#[test]
fn the_adapter_says_who_it_is() {
    let Some(gpu) = gpu() else { return };
    assert!(!gpu.info().name.is_empty());
    assert!(gpu.max_buffer_bytes() > 0);
    let _ = writeln!(std::io::stderr(), "adapter: {} ({:?})", gpu.info().name, gpu.info().backend);
}

/// A future that borrows the device must be able to move between threads: servers run on such executors.
#[test]
fn futures_may_change_threads() {
    fn send<T: Send>(_: &T) {}
    let Some(gpu) = gpu() else { return };
    let batch = tokenwise::Batch::new(tokenwise::Layout::padded(0, 0).unwrap(), tokenwise::Mask::new(&[])).unwrap();
    let config = Default::default();
    let (mut advantages, mut returns) = ([], []);
    send(&gpu.gae(
        &batch,
        tokenwise::advantage::GaeInput { rewards: &[], values: &[], bootstrap: &[] },
        &config,
        tokenwise::advantage::GaeOutput { advantages: &mut advantages, returns: &mut returns },
    ));
    let engine = tokenwise_gpu::Engine::cpu();
    let (kl, mut out) = (Default::default(), []);
    let input = tokenwise::divergence::KlInput { log_probs: &[], ref_log_probs: &[] };
    send(&engine.kl_estimate(&batch, input, &kl, &mut out));
}
