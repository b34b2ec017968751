//! Bytes to the device and back.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

use bytemuck::Pod;
use wgpu::{Buffer, BufferDescriptor, BufferUsages, CommandEncoder, CommandEncoderDescriptor, MapMode};

use crate::{context::Gpu, error::GpuError};

/// Bytes of one f32 or u32.
pub(crate) const WORD: u64 = 4;

impl Gpu {
    /// A storage buffer of `words` words that shaders write.
    pub(crate) fn scratch(&self, label: &str, words: u64) -> Buffer {
        self.buffer(label, words * WORD, BufferUsages::STORAGE | BufferUsages::COPY_SRC)
    }

    /// A storage buffer with these entries.
    pub(crate) fn upload<T: Pod>(&self, label: &str, entries: &[T]) -> Buffer {
        self.filled(label, entries, BufferUsages::STORAGE)
    }

    /// A uniform buffer with these four words, the size every kernel's `Params` has.
    pub(crate) fn params(&self, label: &str, words: [u32; 4]) -> Buffer {
        self.filled(label, &words, BufferUsages::UNIFORM)
    }

    fn filled<T: Pod>(&self, label: &str, entries: &[T], usage: BufferUsages) -> Buffer {
        let bytes: &[u8] = bytemuck::cast_slice(entries);
        let buffer = self.buffer(label, bytes.len() as u64, usage | BufferUsages::COPY_DST);
        self.queue.write_buffer(&buffer, 0, bytes);
        buffer
    }

    fn buffer(&self, label: &str, size: u64, usage: BufferUsages) -> Buffer {
        let label = Some(label);
        self.device.create_buffer(&BufferDescriptor { label, size, usage, mapped_at_creation: false })
    }

    /// Where a kernel's passes are recorded.
    pub(crate) fn encoder(&self, label: &str) -> CommandEncoder {
        self.device.create_command_encoder(&CommandEncoderDescriptor { label: Some(label) })
    }

    /// Records the copy of whole buffers, back to back, into one that the host can read.
    pub(crate) fn gather(&self, encoder: &mut CommandEncoder, label: &str, sources: &[&Buffer]) -> Buffer {
        let size = sources.iter().fold(0, |size, source| size + source.size());
        let staging = self.buffer(label, size, BufferUsages::MAP_READ | BufferUsages::COPY_DST);
        let mut offset = 0;
        for source in sources {
            encoder.copy_buffer_to_buffer(source, 0, &staging, offset, source.size());
            offset += source.size();
        }
        staging
    }

    /// The words of a gathered buffer, once the work submitted so far is done. Natively this blocks the thread.
    pub(crate) async fn read_back(&self, staging: &Buffer) -> Result<Vec<u32>, GpuError> {
        let arrival = Arc::new(Mutex::new((None, None::<Waker>)));
        let sender = Arc::clone(&arrival);
        let sent = self.caught(|| {
            staging.map_async(MapMode::Read, .., move |result| {
                let mut arrived = sender.lock().unwrap_or_else(PoisonError::into_inner);
                arrived.0 = Some(result);
                if let Some(waker) = arrived.1.take() {
                    waker.wake();
                }
            });
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
        let view = staging.get_mapped_range(..).map_err(|error| GpuError::Device(error.to_string()))?;
        let words = view.chunks_exact(4).map(|bytes| {
            let mut word = [0; 4];
            word.copy_from_slice(bytes);
            u32::from_le_bytes(word)
        });
        Ok(words.collect())
    }
}
