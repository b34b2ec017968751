//! The compute pipelines: one [`Kernel`] per shader file, made once per device.

use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, BindGroupLayout, BindGroupLayoutDescriptor, BindGroupLayoutEntry,
    BindingType, Buffer, BufferBindingType, CommandEncoder, ComputePassDescriptor, ComputePipeline,
    ComputePipelineDescriptor, Device, PipelineLayoutDescriptor, ShaderModuleDescriptor, ShaderSource, ShaderStages,
};

use crate::error::GpuError;

/// Threads of every workgroup: what every browser offers.
pub(crate) const THREADS: u32 = 256;
/// Storage buffers of the kernel with the most of them.
pub(crate) const STORAGE_BUFFERS: u32 = 7;
/// Workgroup memory of the kernel with the most of it: a scanned map is five words.
pub(crate) const WORKGROUP_BYTES: u32 = THREADS * 20;

/// What a binding is; the position in the list is its number.
#[derive(Clone, Copy, Debug)]
enum Binding {
    Uniform,
    Read,
    Write,
}
use Binding::{Read, Uniform, Write};

/// One shader file. All its passes share one list of bindings, so one bind group serves them all.
struct Source {
    label: &'static str,
    wgsl: &'static str,
    bindings: &'static [Binding],
    passes: &'static [&'static str],
}

const LOG_PROBS: Source = Source {
    label: "policy/log_probs",
    wgsl: concat!(
        include_str!("../shaders/prelude/grid.wgsl"),
        include_str!("../shaders/prelude/math.wgsl"),
        include_str!("../shaders/policy/log_probs.wgsl"),
    ),
    bindings: &[Uniform, Read, Read, Write, Write, Write],
    passes: &["log_probs_and_entropy"],
};

const GAE: Source = Source {
    label: "advantage/gae",
    wgsl: concat!(include_str!("../shaders/prelude/grid.wgsl"), include_str!("../shaders/advantage/gae.wgsl"),),
    bindings: &[Uniform, Read, Read, Read, Read, Write, Write, Write],
    passes: &["fold", "carry", "apply"],
};

/// All kernels of the crate.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) log_probs: Kernel,
    pub(crate) gae: Kernel,
}

impl Kernels {
    pub(crate) fn new(device: &Device) -> Self {
        Self { log_probs: Kernel::new(device, &LOG_PROBS), gae: Kernel::new(device, &GAE) }
    }
}

/// The pipelines of one shader file.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) label: &'static str,
    layout: BindGroupLayout,
    passes: Vec<ComputePipeline>,
}

impl Kernel {
    fn new(device: &Device, source: &Source) -> Self {
        let label = Some(source.label);
        let module = device
            .create_shader_module(ShaderModuleDescriptor { label, source: ShaderSource::Wgsl(source.wgsl.into()) });
        let entries: Vec<_> = (0..).zip(source.bindings).map(|(index, &kind)| entry(index, kind)).collect();
        let layout = device.create_bind_group_layout(&BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let passes = source.passes.iter().map(|&pass| {
            device.create_compute_pipeline(&ComputePipelineDescriptor {
                label: Some(&format!("{} {pass}", source.label)),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(pass),
                compilation_options: Default::default(),
                cache: None,
            })
        });
        Self { label: source.label, passes: passes.collect(), layout }
    }

    /// Binds the buffers in the order of the shader's binding numbers.
    pub(crate) fn bind(&self, device: &Device, buffers: &[&Buffer]) -> BindGroup {
        let entries: Vec<_> = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        device.create_bind_group(&BindGroupDescriptor {
            label: Some(self.label),
            layout: &self.layout,
            entries: &entries,
        })
    }

    /// Records all passes, each with its number of workgroups. Each sees what the ones before it wrote.
    pub(crate) fn record(&self, encoder: &mut CommandEncoder, bound: &BindGroup, grids: &[Grid]) {
        let mut pass =
            encoder.begin_compute_pass(&ComputePassDescriptor { label: Some(self.label), timestamp_writes: None });
        pass.set_bind_group(0, bound, &[]);
        for (pipeline, grid) in self.passes.iter().zip(grids) {
            pass.set_pipeline(pipeline);
            pass.dispatch_workgroups(grid.x, grid.y, 1);
        }
    }
}

fn entry(binding: u32, kind: Binding) -> BindGroupLayoutEntry {
    let ty = match kind {
        Uniform => BufferBindingType::Uniform,
        Read => BufferBindingType::Storage { read_only: true },
        Write => BufferBindingType::Storage { read_only: false },
    };
    BindGroupLayoutEntry {
        binding,
        visibility: ShaderStages::COMPUTE,
        ty: BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    }
}

/// Workgroups of a dispatch on two axes, since one axis has a limit; `flat_group` counts them in the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    x: u32,
    y: u32,
}

impl Grid {
    pub(crate) const ONE: Self = Self { x: 1, y: 1 };

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
