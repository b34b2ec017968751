//! A tensor library in the small: one kernel per operation, every intermediate in memory, buffers from a pool, one
//! submission. It shows what the same operations cost without fusion.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use tokenwise_gpu::{wgpu, Gpu};
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, Buffer, BufferDescriptor, BufferUsages, CommandEncoderDescriptor,
    ComputePassDescriptor, ComputePipeline, ComputePipelineDescriptor, MapMode, PollType, ShaderModuleDescriptor,
    ShaderSource,
};

/// Threads per workgroup, and entries per thread, as in tokenwise-gpu.
const THREADS: usize = 256;
const ITEMS: usize = 8;

type Free = Rc<RefCell<HashMap<usize, Vec<Buffer>>>>;

/// A buffer that returns to the pool.
struct Pooled {
    buffer: Buffer,
    len: usize,
    free: Free,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.free.borrow_mut().entry(self.len).or_default().push(self.buffer.clone());
    }
}

/// Words on the device.
#[derive(Clone)]
pub struct Tensor(Rc<Pooled>);

impl Tensor {
    pub fn len(&self) -> usize {
        self.0.len
    }
}

/// How a kernel indexes an operand whose entries the result shares.
#[derive(Clone, Copy)]
pub enum Each {
    /// One per entry.
    Entry,
    /// One per row of this many entries.
    Row(usize),
    /// One for all.
    All,
}

/// How the entries of a row are folded.
#[derive(Clone, Copy)]
pub enum Fold {
    Sum,
    Max,
}

struct Step {
    pipeline: Rc<ComputePipeline>,
    /// Not the tensors: what nobody holds any more is free for later steps.
    bound: Vec<Buffer>,
    groups: usize,
}

/// The device, its pipelines, its free buffers, and the steps recorded so far.
pub struct Tensors<'a> {
    gpu: &'a Gpu,
    pipelines: RefCell<HashMap<String, Rc<ComputePipeline>>>,
    free: Free,
    steps: RefCell<Vec<Step>>,
}

impl<'a> Tensors<'a> {
    pub fn new(gpu: &'a Gpu) -> Self {
        Self { gpu, pipelines: RefCell::default(), free: Free::default(), steps: RefCell::default() }
    }

    pub fn empty(&self, len: usize) -> Tensor {
        let free = self.free.borrow_mut().get_mut(&len).and_then(Vec::pop);
        let buffer = free.unwrap_or_else(|| {
            self.gpu.device().create_buffer(&BufferDescriptor {
                label: None,
                size: len as u64 * 4,
                usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        Tensor(Rc::new(Pooled { buffer, len, free: Rc::clone(&self.free) }))
    }

    pub fn upload(&self, words: &[u32]) -> Tensor {
        let tensor = self.empty(words.len());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.gpu.queue().write_buffer(&tensor.0.buffer, 0, &bytes);
        tensor
    }

    pub fn floats(&self, numbers: &[f32]) -> Tensor {
        self.upload(&numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>())
    }

    fn pipeline(&self, label: &str, wgsl: String) -> Rc<ComputePipeline> {
        if let Some(made) = self.pipelines.borrow().get(&wgsl) {
            return Rc::clone(made);
        }
        let device = self.gpu.device();
        let source = ShaderSource::Wgsl(wgsl.as_str().into());
        let module = device.create_shader_module(ShaderModuleDescriptor { label: None, source });
        let pipeline = Rc::new(device.create_compute_pipeline(&ComputePipelineDescriptor {
            label: Some(label),
            layout: None,
            module: &module,
            entry_point: Some("main"),
            compilation_options: Default::default(),
            cache: None,
        }));
        self.pipelines.borrow_mut().insert(wgsl, Rc::clone(&pipeline));
        pipeline
    }

    fn step(&self, label: &str, body: &str, bound: &[(&Tensor, &str, &str)], groups: usize) {
        let mut wgsl = String::new();
        for (binding, (_, name, kind)) in bound.iter().enumerate() {
            let access = if name.starts_with("out") { "read_write" } else { "read" };
            wgsl += &format!("@group(0) @binding({binding}) var<storage, {access}> {name}: array<{kind}>;\n");
        }
        let bound = bound.iter().map(|(tensor, ..)| tensor.0.buffer.clone()).collect();
        let pipeline = self.pipeline(label, wgsl + body);
        self.steps.borrow_mut().push(Step { pipeline, bound, groups });
    }

    /// A formula of `a`, `b` and `c`, the entries of up to three operands.
    pub fn map(&self, len: usize, formula: &str, operands: &[(&Tensor, Each)]) -> Tensor {
        let out = self.empty(len);
        let names = ["a", "b", "c"];
        let load = operands.iter().zip(names).map(|((_, each), name)| match each {
            Each::Entry => format!("let {name} = in_{name}[i];"),
            Each::Row(width) => format!("let {name} = in_{name}[i / {width}u];"),
            Each::All => format!("let {name} = in_{name}[0];"),
        });
        let body = format!(
            "@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {{
    for (var item = 0u; item < {ITEMS}u; item++) {{
        let i = (group.x * {ITEMS}u + item) * {THREADS}u + thread;
        if (i >= {len}u) {{ return; }}
        {}
        out[i] = {formula};
    }}
}}",
            load.collect::<Vec<_>>().join(" ")
        );
        let inputs = ["in_a", "in_b", "in_c"];
        let mut bound: Vec<_> = operands.iter().zip(inputs).map(|((tensor, _), name)| (*tensor, name, "f32")).collect();
        bound.push((&out, "out", "f32"));
        self.step("map", &body, &bound, len.div_ceil(THREADS * ITEMS));
        out
    }

    /// One number per row of `width` entries.
    pub fn fold(&self, of: &Tensor, width: usize, fold: Fold) -> Tensor {
        let rows = of.len() / width;
        let out = self.empty(rows);
        let (start, step) = match fold {
            Fold::Sum => ("0.0", "x + y"),
            Fold::Max => ("-3.4e38", "max(x, y)"),
        };
        let body = format!(
            "var<workgroup> parts: array<f32, {THREADS}>;
fn step(x: f32, y: f32) -> f32 {{ return {step}; }}
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {{
    var all = f32({start});
    for (var at = thread; at < {width}u; at += {THREADS}u) {{ all = step(all, in_a[group.x * {width}u + at]); }}
    parts[thread] = all;
    workgroupBarrier();
    for (var half = {THREADS}u / 2u; half > 0u; half /= 2u) {{
        if (thread < half) {{ parts[thread] = step(parts[thread], parts[thread + half]); }}
        workgroupBarrier();
    }}
    if (thread == 0u) {{ out[group.x] = parts[0]; }}
}}"
        );
        self.step("fold", &body, &[(of, "in_a", "f32"), (&out, "out", "f32")], rows);
        out
    }

    /// `out[r] = of[r, ids[r]]`.
    pub fn gather(&self, of: &Tensor, ids: &Tensor, first: usize, width: usize) -> Tensor {
        let rows = of.len() / width;
        let out = self.empty(rows);
        let body = rows_kernel(rows, &format!("out[i] = in_a[i * {width}u + ids[i + {first}u]];"));
        self.step(
            "gather",
            &body,
            &[(of, "in_a", "f32"), (ids, "ids", "u32"), (&out, "out", "f32")],
            rows.div_ceil(THREADS),
        );
        out
    }

    /// `to[r, ids[r]] += add[r]`, in place.
    pub fn scatter_add(&self, to: &Tensor, add: &Tensor, ids: &Tensor, first: usize, width: usize) {
        let rows = to.len() / width;
        let body = rows_kernel(rows, &format!("out[i * {width}u + ids[i + {first}u]] += in_a[i + {first}u];"));
        self.step(
            "scatter",
            &body,
            &[(add, "in_a", "f32"), (ids, "ids", "u32"), (to, "out", "f32")],
            rows.div_ceil(THREADS),
        );
    }

    /// `out[r, t] = of[r, t + by]`, 0 beyond the row.
    pub fn shifted(&self, of: &Tensor, width: usize, by: usize) -> Tensor {
        let formula = format!("select(0.0, in_a[min(i + {by}u, {}u)], i % {width}u + {by}u < {width}u)", of.len() - 1);
        self.map(of.len(), &formula, &[(of, Each::Entry)])
    }

    /// Several tensors one after another.
    pub fn concatenated(&self, parts: &[Tensor]) -> Tensor {
        let out = self.empty(parts.iter().map(Tensor::len).sum());
        let mut at = 0;
        for part in parts {
            let body = rows_kernel(part.len(), &format!("out[i + {at}u] = in_a[i];"));
            self.step(
                "concatenate",
                &body,
                &[(part, "in_a", "f32"), (&out, "out", "f32")],
                part.len().div_ceil(THREADS),
            );
            at += part.len();
        }
        out
    }

    /// Runs the recorded steps and reads these tensors back.
    pub fn read(&self, of: &[&Tensor]) -> Result<Vec<Vec<f32>>, Box<dyn std::error::Error>> {
        let (device, queue) = (self.gpu.device(), self.gpu.queue());
        let steps = self.steps.take();
        let mut encoder = device.create_command_encoder(&CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
            for step in &steps {
                let entries: Vec<_> = (0..)
                    .zip(&step.bound)
                    .map(|(binding, buffer)| BindGroupEntry { binding, resource: buffer.as_entire_binding() })
                    .collect();
                let layout = &step.pipeline.get_bind_group_layout(0);
                let group = device.create_bind_group(&BindGroupDescriptor { label: None, layout, entries: &entries });
                pass.set_pipeline(&step.pipeline);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(step.groups as u32, 1, 1);
            }
        }
        let mut copies = Vec::new();
        for tensor in of {
            let size = tensor.len() as u64 * 4;
            let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
            let copy = device.create_buffer(&BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
            encoder.copy_buffer_to_buffer(&tensor.0.buffer, 0, &copy, 0, size);
            copies.push(copy);
        }
        queue.submit([encoder.finish()]);
        copies.iter().for_each(|copy| copy.map_async(MapMode::Read, .., |_| ()));
        device.poll(PollType::wait_indefinitely())?;
        let mut read = Vec::new();
        for copy in &copies {
            let bytes = copy.get_mapped_range(..)?;
            let word = |word: &[u8]| f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            read.push(bytes.chunks_exact(4).map(word).collect());
        }
        Ok(read)
    }
}

fn rows_kernel(rows: usize, statement: &str) -> String {
    format!(
        "@compute @workgroup_size({THREADS})
fn main(@builtin(global_invocation_id) at: vec3<u32>) {{
    let i = at.x;
    if (i >= {rows}u) {{ return; }}
    {statement}
}}"
    )
}
