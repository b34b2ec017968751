//! Compute pipelines: made from a [`Kernel`] when it first runs, once per device.

use std::{
    collections::HashMap,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

use wgpu::{
    BindGroupLayout, BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, BufferBindingType, ComputePipeline,
    ComputePipelineDescriptor, Device, ErrorFilter, PipelineLayoutDescriptor, ShaderModuleDescriptor, ShaderSource,
    ShaderStages,
};

use crate::error::GpuError;

/// Threads of a workgroup in kernels over slots. Must match `shaders/prelude/slots.wgsl`.
pub(crate) const THREADS: u32 = 64;
/// Slots of a workgroup: 16 per thread.
pub(crate) const BLOCK: u64 = 16 * THREADS as u64;
/// Threads of the largest workgroup: what WebGPU guarantees.
pub(crate) const MOST_THREADS: u32 = 256;
/// Storage buffers that every WebGPU device has. A kernel that binds more checks the device's limit by itself.
pub(crate) const STORAGE_BUFFERS: u32 = 8;
/// Workgroup memory of the kernel that uses the most: a scanned map is five words.
pub(crate) const WORKGROUP_BYTES: u32 = MOST_THREADS * 20;

/// How a kernel accesses a storage buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A shader: binding 0 is the uniform `params`, the others are storage buffers. All passes share the bindings.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Its name, unique among all kernels and variants.
    pub(crate) label: String,
    pub(crate) wgsl: String,
    /// Bindings 1, 2, …
    pub(crate) bindings: Vec<Access>,
    /// The entry points.
    pub(crate) passes: &'static [&'static str],
}

/// The pipelines of one kernel.
#[derive(Debug)]
pub(crate) struct Pipelines {
    pub(crate) label: String,
    pub(crate) layout: BindGroupLayout,
    pub(crate) passes: Vec<ComputePipeline>,
    pub(crate) bindings: usize,
}

/// All pipelines made so far, by label.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<String, Arc<Pipelines>>>);

impl Cache {
    /// The pipelines with this label; `describe` is called if they do not exist yet.
    pub(crate) fn get(
        &self,
        device: &Device,
        label: &str,
        describe: impl FnOnce() -> Kernel,
    ) -> Result<Arc<Pipelines>, GpuError> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipelines) = made.get(label) {
            return Ok(Arc::clone(pipelines));
        }
        let kernel = describe();
        let (needed, limit) = (kernel.bindings.len() as u64, device.limits().max_storage_buffers_per_shader_stage);
        if needed > limit.into() {
            return Err(GpuError::Limit { what: "storage buffers of a kernel", needed, limit: limit.into() });
        }
        let scope = device.push_error_scope(ErrorFilter::Validation);
        let pipelines = Arc::new(Pipelines::new(device, &kernel));
        // natively the answer is there at once; in the browser an invalid pipeline fails the submission
        let answer = pin!(scope.pop()).poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(Some(error)) = answer {
            return Err(error.into());
        }
        made.insert(label.into(), Arc::clone(&pipelines));
        Ok(pipelines)
    }
}

impl Pipelines {
    fn new(device: &Device, kernel: &Kernel) -> Self {
        let label = Some(kernel.label.as_str());
        let module = device.create_shader_module(ShaderModuleDescriptor {
            label,
            source: ShaderSource::Wgsl(kernel.wgsl.as_str().into()),
        });
        let storage =
            kernel.bindings.iter().map(|&access| BufferBindingType::Storage { read_only: access == Access::Read });
        let entries: Vec<_> = (0..).zip([BufferBindingType::Uniform].into_iter().chain(storage)).map(entry).collect();
        let layout = device.create_bind_group_layout(&BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let passes = kernel.passes.iter().map(|&pass| {
            device.create_compute_pipeline(&ComputePipelineDescriptor {
                label: Some(&format!("{} {pass}", kernel.label)),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(pass),
                compilation_options: Default::default(),
                cache: None,
            })
        });
        Self { label: kernel.label.clone(), passes: passes.collect(), layout, bindings: kernel.bindings.len() }
    }
}

fn entry((binding, ty): (u32, BufferBindingType)) -> BindGroupLayoutEntry {
    BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}

/// Workgroups of a dispatch over two axes, because one axis is limited; `flat_group` computes the flat index in the
/// shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) x: u32,
    pub(crate) y: u32,
}

impl Grid {
    /// At least `groups` workgroups, at most one row of the grid too many.
    pub(crate) fn of(groups: u64, per_axis: u32) -> Result<Self, GpuError> {
        let axis = u64::from(per_axis);
        let (x, y) = (groups.min(axis), groups.div_ceil(axis));
        match (u32::try_from(x), u32::try_from(y)) {
            (Ok(x), Ok(y)) if y <= per_axis => Ok(Self { x, y }),
            _ => Err(GpuError::Limit { what: "workgroups", needed: groups, limit: axis * axis }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_cover_every_group() {
        assert_eq!(Grid::of(1, 65_535), Ok(Grid { x: 1, y: 1 }));
        assert_eq!(Grid::of(65_535, 65_535), Ok(Grid { x: 65_535, y: 1 }));
        assert_eq!(Grid::of(65_536, 65_535), Ok(Grid { x: 65_535, y: 2 }));
        assert_eq!(Grid::of(5, 2), Err(GpuError::Limit { what: "workgroups", needed: 5, limit: 4 }));
    }
}
