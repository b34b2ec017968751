//! [`Recording`]: any number of kernels, submitted at once; only what was asked for is read back.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use bytemuck::cast_slice;
use half::{bf16, f16, slice::HalfFloatSliceExt};
use wgpu::{
    BindGroupDescriptor, BindGroupEntry, BindingResource, Buffer, BufferBinding, BufferDescriptor, BufferSize,
    BufferUsages, CommandEncoderDescriptor, ComputePassDescriptor, ComputePassTimestampWrites, Device, MapMode,
    QuerySet, QuerySetDescriptor, QueryType,
};

use crate::{
    column::{Column, Format, Input},
    context::Gpu,
    error::GpuError,
    kernel::{Grid, Kernel, Pipelines},
    pool::{Pooled, Use, WORD},
    report::{Clock, Ran, Report},
};

mod done;

pub(crate) use done::RECORD_FLAGS;
pub use done::{Done, Download, Pending};

/// Bytes between the parameters of two kernels: the largest alignment that a device may ask for.
const PARAMS: u64 = 256;

/// A dispatch.
#[derive(Debug)]
struct Step {
    pipelines: Arc<Pipelines>,
    pass: usize,
    params: Vec<u32>,
    bound: Vec<Column>,
    grid: Grid,
}

/// Kernels to run in one submission. Its methods check a call, send host inputs, and return the outputs as
/// [`Column`]s, which later kernels of this or another recording of the same device can read.
///
/// Nothing runs before [`Recording::submit`]. A recording that is dropped runs nothing.
#[derive(Debug)]
pub struct Recording<'g> {
    pub(crate) gpu: &'g Gpu,
    steps: Vec<Step>,
    /// Words to set to 0 before the first kernel.
    zeroed: Vec<Column>,
    /// What is copied after the last kernel, and where to.
    copies: Vec<(Column, Column)>,
    downloads: Vec<Column>,
    /// The downloads that are records.
    records: Vec<usize>,
    bytes_up: u64,
    clock: Clock,
}

/// Where a kernel writes its flags and sums.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) column: Column,
    pub(crate) header: Download,
}

impl Gpu {
    /// Begins a recording.
    pub fn record(&self) -> Recording<'_> {
        Recording {
            gpu: self,
            steps: Vec::new(),
            zeroed: Vec::new(),
            copies: Vec::new(),
            downloads: Vec::new(),
            records: Vec::new(),
            bytes_up: 0,
            clock: Clock::start(),
        }
    }
}

impl Recording<'_> {
    /// Sends host numbers. Columns stay on the device for as long as they are held.
    ///
    /// # Errors
    ///
    /// [`GpuError::Limit`] beyond the largest buffer.
    pub fn upload(&mut self, numbers: &[f32]) -> Result<Column, GpuError> {
        self.send(Format::Word, numbers.len(), cast_slice(numbers))
    }

    /// Sends host words, such as token ids.
    ///
    /// # Errors
    ///
    /// As [`Self::upload`].
    pub fn upload_words(&mut self, words: &[u32]) -> Result<Column, GpuError> {
        self.send(Format::Word, words.len(), cast_slice(words))
    }

    /// Sends logits in half precision.
    ///
    /// # Errors
    ///
    /// As [`Self::upload`].
    pub fn upload_f16(&mut self, logits: &[f16]) -> Result<Column, GpuError> {
        self.send(Format::F16, logits.len(), cast_slice(logits.reinterpret_cast()))
    }

    /// Sends logits in bfloat16.
    ///
    /// # Errors
    ///
    /// As [`Self::upload`].
    pub fn upload_bf16(&mut self, logits: &[bf16]) -> Result<Column, GpuError> {
        self.send(Format::Bf16, logits.len(), cast_slice(logits.reinterpret_cast()))
    }

    fn send(&mut self, format: Format, len: usize, bytes: &[u8]) -> Result<Column, GpuError> {
        let column = Column::scratch_of(format, self.gpu, len as u64)?;
        // the last of an odd number of halves is half a word
        let (words, rest) = bytes.split_at(bytes.len() / WORD as usize * WORD as usize);
        let mut last = [0; WORD as usize];
        last[..rest.len()].copy_from_slice(rest);
        let (buffer, offset) = column.buffer();
        self.gpu.shielded(|| {
            if !words.is_empty() {
                self.gpu.queue.write_buffer(buffer, offset, words);
            }
            if !rest.is_empty() {
                self.gpu.queue.write_buffer(buffer, offset + words.len() as u64, &last);
            }
        })?;
        self.bytes_up += bytes.len() as u64;
        Ok(column)
    }

    /// The input on the device, which must not be in half precision.
    pub(crate) fn column(&mut self, input: &Input<'_>) -> Result<Column, GpuError> {
        let is_half = match input {
            Input::Host(_) | Input::Words(_) => false,
            Input::F16(_) | Input::Bf16(_) => true,
            Input::Device(column) => column.format() != Format::Word,
        };
        if is_half {
            return Err(GpuError::Unsupported("only logits are read in half precision"));
        }
        self.logits(input)
    }

    /// The input on the device, in its own precision.
    pub(crate) fn logits(&mut self, input: &Input<'_>) -> Result<Column, GpuError> {
        match input {
            Input::Host(numbers) => self.upload(numbers),
            Input::Words(words) => self.upload_words(words),
            Input::F16(logits) => self.upload_f16(logits),
            Input::Bf16(logits) => self.upload_bf16(logits),
            Input::Device(column) => Ok(column.clone()),
        }
    }

    /// Several inputs on the device.
    pub(crate) fn columns<const N: usize>(&mut self, inputs: [&Input<'_>; N]) -> Result<[Column; N], GpuError> {
        let columns: Vec<Column> = inputs.into_iter().map(|input| self.column(input)).collect::<Result<_, _>>()?;
        columns.try_into().map_err(|_| GpuError::Unsupported("as many columns as inputs"))
    }

    /// A column for a kernel to write.
    pub(crate) fn scratch(&self, len: u64) -> Result<Column, GpuError> {
        Column::scratch(self.gpu, len)
    }

    /// A record with this many sums and `scratch` further words; its header is 0 before the first kernel and read back.
    pub(crate) fn record(&mut self, sums: u64, scratch: u64) -> Result<Record, GpuError> {
        let header = RECORD_FLAGS + 2 * sums;
        let column = self.scratch(header + scratch)?;
        let header = column.part(0, header);
        self.zeroed.push(header.clone());
        self.records.push(self.downloads.len());
        Ok(Record { column, header: self.download(&header) })
    }

    /// Asks for the words of a column.
    pub fn download(&mut self, column: &Column) -> Download {
        self.downloads.push(column.clone());
        Download(self.downloads.len() - 1)
    }

    /// Copies a result into the caller's own buffer on the device, after the last kernel: `target` is a range of it
    /// ([`Column::from_buffer`]). If [`Self::submit`] fails, the contents of the target are unknown.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the target has another length or format, is in the buffer of the result itself, or
    /// lacks the usage `COPY_DST`.
    pub fn copy_to(&mut self, column: &Column, target: &Column) -> Result<(), GpuError> {
        let (buffer, _) = target.buffer();
        if !buffer.usage().contains(BufferUsages::COPY_DST) {
            return Err(GpuError::Unsupported("the buffer of an output needs the usage COPY_DST"));
        }
        if buffer == column.buffer().0 {
            return Err(GpuError::Unsupported("an output is copied to another buffer"));
        }
        if (column.len(), column.format()) != (target.len(), target.format()) {
            return Err(GpuError::Unsupported("an output has the length and the format of its target"));
        }
        if !column.is_empty() {
            self.copies.push((column.clone(), target.clone()));
        }
        Ok(())
    }

    /// The pipelines of a kernel.
    pub(crate) fn pipelines(&self, label: &str, describe: impl FnOnce() -> Kernel) -> Result<Arc<Pipelines>, GpuError> {
        self.gpu.shielded(|| self.gpu.cache.get(&self.gpu.device, label, describe))?
    }

    /// Adds a dispatch. `bound` are the storage buffers in the order of the bindings.
    pub(crate) fn dispatch(
        &mut self,
        pipelines: &Arc<Pipelines>,
        pass: usize,
        params: &[u32],
        bound: &[&Column],
        groups: u64,
    ) -> Result<(), GpuError> {
        if groups == 0 {
            return Ok(());
        }
        debug_assert_eq!(bound.len(), pipelines.bindings, "bindings of {}", pipelines.label);
        debug_assert!(params.len() as u64 * WORD <= PARAMS, "parameters of {}", pipelines.label);
        let aligned = u64::from(self.gpu.limits().min_storage_buffer_offset_alignment);
        if !bound.iter().all(|column| column.buffer().1.is_multiple_of(aligned)) {
            return Err(GpuError::Unsupported("a column starts at a multiple of the device's offset alignment"));
        }
        let limit = self.gpu.limits().max_storage_buffer_binding_size;
        if let Some(column) = bound.iter().find(|column| column.bytes() > limit) {
            return Err(GpuError::Limit { what: "one binding, in bytes", needed: column.bytes(), limit });
        }
        let grid = Grid::of(groups, self.gpu.limits().max_compute_workgroups_per_dimension)?;
        self.steps.push(Step {
            pipelines: Arc::clone(pipelines),
            pass,
            params: params.to_vec(),
            bound: bound.iter().copied().cloned().collect(),
            grid,
        });
        Ok(())
    }

    /// Runs everything, then reads back what was asked for. Natively this yields once after the work was handed to the
    /// device, so that other futures of the thread can do the same, and then blocks the thread while the device
    /// computes; in the browser it yields. Dropping the future is safe at any time.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Lost`], [`GpuError::Device`].
    pub async fn submit(mut self) -> Result<Done, GpuError> {
        let gpu = self.gpu;
        let stamps = gpu.stamps.is_some() && !self.steps.is_empty();
        let words = self.downloads.iter().fold(0, |words, column| words + column.words());
        // timestamps behind the words, at a multiple of 8 bytes
        let stamp_offset = (words * WORD).next_multiple_of(8);
        let staging_bytes = stamp_offset + if stamps { 16 } else { 0 };
        let limit = gpu.limits().max_buffer_size;
        if staging_bytes > limit {
            return Err(GpuError::Limit { what: "bytes read back at once", needed: staging_bytes, limit });
        }
        let mut staging = gpu.take(Use::Staging, staging_bytes)?;
        // until it is unmapped: this future may be cancelled
        staging.forget();
        let params_bytes = self.steps.len() as u64 * PARAMS;
        gpu.caught(|| self.encode(&staging, params_bytes, stamps.then_some(stamp_offset))).await?;
        #[cfg(not(target_arch = "wasm32"))]
        yield_once().await;
        let bytes = if staging_bytes == 0 {
            gpu.finish_submitted()?;
            Vec::new()
        } else {
            gpu.read(&mut staging, staging_bytes).await?
        };
        gpu.check_health()?;
        let all: Vec<u32> =
            bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
        let device = stamps.then(|| device_time(&all[stamp_offset as usize / 4..], gpu.queue.get_timestamp_period()));
        let report = Report {
            ran: Ran::Gpu,
            host: None,
            device,
            bytes_up: self.bytes_up + params_bytes,
            bytes_down: staging_bytes,
            dispatches: self.steps.len() as u32,
            special: false,
        };
        let mut done = Done::new(all, &self.downloads, report);
        done.report.special = self.records.iter().any(|&record| done.words(Download(record)).first() != Some(&0));
        done.report.host = self.clock.elapsed();
        self.steps.clear();
        Ok(done)
    }

    /// Encodes and submits all steps.
    fn encode(&self, staging: &Pooled, params_bytes: u64, stamp_offset: Option<u64>) -> Result<(), GpuError> {
        let gpu = self.gpu;
        let device = &gpu.device;
        let mut encoder = device.create_command_encoder(&CommandEncoderDescriptor { label: Some("tokenwise") });
        for column in &self.zeroed {
            let (buffer, offset) = column.buffer();
            encoder.clear_buffer(buffer, offset, Some(column.bytes()));
        }
        let params = gpu.take(Use::Uniform, params_bytes)?;
        let stamps = gpu.stamps.as_ref().zip(stamp_offset);
        if !self.steps.is_empty() {
            let mut words = vec![0_u32; (params_bytes / WORD) as usize];
            for (place, step) in words.chunks_exact_mut((PARAMS / WORD) as usize).zip(&self.steps) {
                place[..step.params.len()].copy_from_slice(&step.params);
            }
            gpu.queue.write_buffer(params.buffer(), 0, cast_slice(&words));
            let timestamp_writes = stamps.map(|(stamps, _)| ComputePassTimestampWrites {
                query_set: &stamps.queries,
                beginning_of_pass_write_index: Some(0),
                end_of_pass_write_index: Some(1),
            });
            let mut pass =
                encoder.begin_compute_pass(&ComputePassDescriptor { label: Some("tokenwise"), timestamp_writes });
            for (index, step) in (0_u64..).zip(&self.steps) {
                let uniform =
                    BufferBinding { buffer: params.buffer(), offset: index * PARAMS, size: BufferSize::new(PARAMS) };
                let bindings = [uniform].into_iter().chain(step.bound.iter().map(Column::binding));
                let entries: Vec<_> = (0..)
                    .zip(bindings)
                    .map(|(binding, buffer)| BindGroupEntry { binding, resource: BindingResource::Buffer(buffer) })
                    .collect();
                let group = device.create_bind_group(&BindGroupDescriptor {
                    label: Some(&step.pipelines.label),
                    layout: &step.pipelines.layout,
                    entries: &entries,
                });
                pass.set_pipeline(&step.pipelines.passes[step.pass]);
                pass.set_bind_group(0, &group, &[]);
                pass.dispatch_workgroups(step.grid.x, step.grid.y, 1);
            }
        }
        for (from, to) in &self.copies {
            let ((source, source_offset), (target, offset)) = (from.buffer(), to.buffer());
            encoder.copy_buffer_to_buffer(source, source_offset, target, offset, from.bytes());
        }
        let mut at = 0;
        for column in &self.downloads {
            let (buffer, offset) = column.buffer();
            if !column.is_empty() {
                encoder.copy_buffer_to_buffer(buffer, offset, staging.buffer(), at, column.bytes());
            }
            at += column.bytes();
        }
        if let Some((stamps, offset)) = stamps {
            encoder.resolve_query_set(&stamps.queries, 0..2, &stamps.resolved, 0);
            encoder.copy_buffer_to_buffer(&stamps.resolved, 0, staging.buffer(), offset, 16);
        }
        gpu.queue.submit([encoder.finish()]);
        Ok(())
    }
}

/// Lets the executor run other futures once.
#[cfg(not(target_arch = "wasm32"))]
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn device_time(words: &[u32], nanoseconds_per_tick: f32) -> Duration {
    let tick = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let nanoseconds = tick(2).saturating_sub(tick(0)) as f64 * f64::from(nanoseconds_per_tick);
    Duration::from_nanos(nanoseconds as u64)
}

/// Two timestamps. One set serves all submissions of a device: the queue runs them in order, and each copies its own.
#[derive(Debug)]
pub(crate) struct Stamps {
    queries: QuerySet,
    resolved: Buffer,
}

impl Stamps {
    pub(crate) fn new(device: &Device) -> Self {
        let label = Some("tokenwise timestamps");
        Self {
            queries: device.create_query_set(&QuerySetDescriptor { label, ty: QueryType::Timestamp, count: 2 }),
            resolved: device.create_buffer(&BufferDescriptor {
                label,
                size: 16,
                usage: BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            }),
        }
    }
}

impl Gpu {
    /// The first bytes of a staging buffer, after all submitted work is done. On native targets this blocks the thread.
    async fn read(&self, staging: &mut Pooled, bytes: u64) -> Result<Vec<u8>, GpuError> {
        let arrival = Arc::new(Mutex::new((None, None::<Waker>)));
        let sender = Arc::clone(&arrival);
        let buffer = staging.buffer().clone();
        let sent = self.caught(|| {
            buffer.map_async(MapMode::Read, ..bytes, move |result| {
                let mut arrived = sender.lock().unwrap_or_else(PoisonError::into_inner);
                arrived.0 = Some(result);
                if let Some(waker) = arrived.1.take() {
                    waker.wake();
                }
            });
            Ok(())
        });
        sent.await?;
        self.finish_submitted()?;
        let mapped = poll_fn(|context| {
            let mut arrived = arrival.lock().unwrap_or_else(PoisonError::into_inner);
            match arrived.0.take() {
                Some(result) => Poll::Ready(result),
                None => {
                    arrived.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        });
        if let Err(error) = mapped.await {
            self.health.check()?;
            return Err(GpuError::Device(error.to_string()));
        }
        let words = self.shielded(|| {
            let words = buffer.get_mapped_range(..bytes).map(|view| view.to_vec());
            buffer.unmap();
            words
        })?;
        let words = words.map_err(|error| GpuError::Device(error.to_string()))?;
        staging.remember();
        Ok(words)
    }
}
