//! Device buffers, reused.
//!
//! A buffer goes back to the pool when the last [`Column`](crate::Column) over it is dropped. The queue executes writes
//! and submissions in order, so a buffer may be handed out again while earlier work still reads it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use wgpu::{Buffer, BufferDescriptor, BufferUsages};

use crate::{context::Gpu, error::GpuError};

/// Bytes of one f32 or u32.
pub(crate) const WORD: u64 = 4;
/// Bytes of the smallest buffer: the largest alignment that a device may ask of an offset.
const SMALLEST: u64 = 256;
/// Bytes that the pool keeps for reuse; what exceeds them is freed.
const KEPT_BYTES: u64 = 1 << 30;

/// What a buffer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Use {
    /// Read and written by shaders, filled from the host and copied back.
    Storage,
    /// The parameters of kernels.
    Uniform,
    /// Read by the host.
    Staging,
}

impl Use {
    const fn usages(self) -> BufferUsages {
        match self {
            Self::Storage => BufferUsages::STORAGE.union(BufferUsages::COPY_SRC).union(BufferUsages::COPY_DST),
            Self::Uniform => BufferUsages::UNIFORM.union(BufferUsages::COPY_DST),
            Self::Staging => BufferUsages::MAP_READ.union(BufferUsages::COPY_DST),
        }
    }
}

#[derive(Debug, Default)]
struct Free {
    buffers: HashMap<(Use, u64), Vec<Buffer>>,
    bytes: u64,
    /// Bytes of all buffers, those in use and those free.
    held: u64,
    /// Grows when all buffers made so far are given up.
    epoch: u64,
}

/// The buffers that are free for reuse.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    free: Arc<Mutex<Free>>,
    /// Bytes that may be held at once.
    limit: u64,
}

impl Gpu {
    /// A buffer of at least `bytes` bytes with arbitrary contents.
    pub(crate) fn take(&self, purpose: Use, bytes: u64) -> Result<Pooled, GpuError> {
        let (pool, size) = (&self.pool, size_class(bytes, self.limits().max_buffer_size));
        let mut free = pool.lock();
        let found = free.buffers.get_mut(&(purpose, size)).and_then(Vec::pop);
        if found.is_some() {
            free.bytes -= size;
        } else {
            if free.held.saturating_add(size) > pool.limit {
                free.clear();
            }
            if free.held.saturating_add(size) > pool.limit {
                return Err(GpuError::OutOfMemory);
            }
            free.held += size;
        }
        let epoch = free.epoch;
        drop(free);
        let make = || {
            let label = Some(match purpose {
                Use::Storage => "tokenwise storage",
                Use::Uniform => "tokenwise parameters",
                Use::Staging => "tokenwise staging",
            });
            let usage = purpose.usages();
            self.device.create_buffer(&BufferDescriptor { label, size, usage, mapped_at_creation: false })
        };
        let buffer = match found {
            Some(buffer) => buffer,
            None => self.shielded(make).inspect_err(|_| pool.lock().held -= size)?,
        };
        Ok(Pooled { buffer, purpose, size, epoch, pool: pool.clone(), reusable: true })
    }
}

impl Free {
    /// Frees what is not in use.
    fn clear(&mut self) {
        self.held -= self.bytes;
        self.bytes = 0;
        self.buffers.clear();
    }
}

impl Pool {
    pub(crate) fn new(limit: u64) -> Self {
        Self { free: Arc::default(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up every buffer made so far: the free ones now, the others when they are dropped. After an error of the
    /// device some may be invalid.
    pub(crate) fn renew(&self) {
        let mut free = self.lock();
        free.clear();
        free.epoch += 1;
    }

    /// Bytes kept for reuse.
    pub(crate) fn bytes(&self) -> u64 {
        self.lock().bytes
    }
}

/// Steps of a quarter between powers of two, so that at most a fifth of a buffer is unused and few sizes exist.
fn size_class(bytes: u64, most: u64) -> u64 {
    let bytes = bytes.max(SMALLEST);
    let step = (1_u64 << bytes.ilog2()) / 4;
    let rounded = bytes.next_multiple_of(step.max(SMALLEST));
    if bytes <= most {
        rounded.min(most / WORD * WORD).max(bytes)
    } else {
        bytes
    }
}

/// A buffer that goes back to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct Pooled {
    buffer: Buffer,
    purpose: Use,
    size: u64,
    epoch: u64,
    pool: Pool,
    /// Whether it may be handed out again.
    reusable: bool,
}

impl Pooled {
    pub(crate) const fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Keeps the buffer out of the pool from now on: it may stay mapped, or the device may have failed.
    pub(crate) fn forget(&mut self) {
        self.reusable = false;
    }

    /// The reverse of [`Self::forget`].
    pub(crate) fn remember(&mut self) {
        self.reusable = true;
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut free = self.pool.lock();
        if self.reusable && free.epoch == self.epoch && free.bytes + self.size <= KEPT_BYTES {
            free.bytes += self.size;
            free.buffers.entry((self.purpose, self.size)).or_default().push(self.buffer.clone());
        } else {
            free.held -= self.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_few_and_waste_little() {
        assert_eq!(size_class(0, 1 << 30), 256);
        assert_eq!(size_class(257, 1 << 30), 512);
        assert_eq!(size_class(4096, 1 << 30), 4096);
        assert_eq!(size_class(4097, 1 << 30), 5120);
        assert_eq!(size_class(1000, 1000), 1000);
        // too large for the device: its own error names the size
        assert_eq!(size_class(2000, 1000), 2000);
        for bytes in (1 << 12..1 << 16).step_by(37) {
            let class = size_class(bytes, 1 << 30);
            assert!(class >= bytes && class * 4 <= bytes * 5 && class.is_multiple_of(256));
        }
    }
}
