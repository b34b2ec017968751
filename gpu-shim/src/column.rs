//! Data on the device: [`Column`], and [`Input`], which may also be host data that is still to be sent.

use std::sync::Arc;

use wgpu::{Buffer, BufferBinding, BufferUsages};

use crate::{
    context::Gpu,
    error::GpuError,
    pool::{Pooled, Use, WORD},
};

/// Words on the device, `f32` or `u32`: an output of a kernel, sent host data, or a range of a caller's own buffer.
/// Clones share the data.
#[derive(Clone, Debug)]
pub struct Column {
    source: Source,
    /// In bytes.
    offset: u64,
    len: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Pooled(Arc<Pooled>),
    Foreign(Buffer),
}

impl Column {
    /// `len` words of the caller's buffer, from word `first` on, such as a tensor that a trainer holds on the same
    /// device ([`Gpu::from_device`]). Kernels read it where it is; nothing is copied.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the buffer lacks the usages `STORAGE` and `COPY_SRC`, if `first` is not a multiple
    /// of 64 words, or if the range exceeds the buffer.
    pub fn from_buffer(buffer: Buffer, first: u64, len: u64) -> Result<Self, GpuError> {
        if !buffer.usage().contains(BufferUsages::STORAGE | BufferUsages::COPY_SRC) {
            return Err(GpuError::Unsupported("a column needs a buffer with usages STORAGE and COPY_SRC"));
        }
        if !first.is_multiple_of(64) {
            return Err(GpuError::Unsupported("a column starts at a multiple of 64 words of its buffer"));
        }
        if first.checked_add(len).and_then(|end| end.checked_mul(WORD)).is_none_or(|end| end > buffer.size()) {
            return Err(GpuError::Unsupported("a column ends within its buffer"));
        }
        Ok(Self { source: Source::Foreign(buffer), offset: first * WORD, len })
    }

    /// `len` words with arbitrary contents.
    pub(crate) fn scratch(gpu: &Gpu, len: u64) -> Result<Self, GpuError> {
        let (bytes, limit) = (len.saturating_mul(WORD), gpu.limits().max_buffer_size.min(u32::MAX.into()));
        if bytes > limit {
            return Err(GpuError::Limit { what: "one buffer, in bytes", needed: bytes, limit });
        }
        let pooled = gpu.take(Use::Storage, bytes)?;
        Ok(Self { source: Source::Pooled(Arc::new(pooled)), offset: 0, len })
    }

    /// Number of words.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no words.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The buffer that holds the words, and the first byte, for work of the caller's own on the device.
    pub fn buffer(&self) -> (&Buffer, u64) {
        let buffer = match &self.source {
            Source::Pooled(pooled) => pooled.buffer(),
            Source::Foreign(buffer) => buffer,
        };
        (buffer, self.offset)
    }

    /// A part of this column.
    pub(crate) fn part(&self, first: u64, len: u64) -> Self {
        Self { source: self.source.clone(), offset: self.offset + first * WORD, len }
    }

    pub(crate) fn binding(&self) -> BufferBinding<'_> {
        let (buffer, offset) = self.buffer();
        // an empty range cannot be bound, and every buffer has at least one word
        BufferBinding { buffer, offset, size: wgpu::BufferSize::new((self.len * WORD).max(WORD)) }
    }
}

/// What a kernel reads: host data, which is sent when the call has been checked, or a [`Column`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Host numbers.
    Host(&'a [f32]),
    /// Host words: token ids, counts.
    Words(&'a [u32]),
    /// Data on the device.
    Device(Column),
}

impl Input<'_> {
    /// Number of entries.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Host(slice) => slice.len() as u64,
            Self::Words(slice) => slice.len() as u64,
            Self::Device(column) => column.len(),
        }
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The core's error unless there are `expected` entries.
    pub(crate) fn check_len(&self, what: &'static str, expected: usize) -> Result<(), GpuError> {
        if self.len() == expected as u64 {
            return Ok(());
        }
        Err(tokenwise::Error::Length { what, expected, got: self.len() as usize }.into())
    }
}

impl<'a> From<&'a [f32]> for Input<'a> {
    fn from(slice: &'a [f32]) -> Self {
        Self::Host(slice)
    }
}

impl<'a> From<&'a Vec<f32>> for Input<'a> {
    fn from(vec: &'a Vec<f32>) -> Self {
        Self::Host(vec)
    }
}

impl<'a> From<&'a [u32]> for Input<'a> {
    fn from(slice: &'a [u32]) -> Self {
        Self::Words(slice)
    }
}

impl<'a> From<&'a Vec<u32>> for Input<'a> {
    fn from(vec: &'a Vec<u32>) -> Self {
        Self::Words(vec)
    }
}

impl From<Column> for Input<'_> {
    fn from(column: Column) -> Self {
        Self::Device(column)
    }
}

impl From<&Column> for Input<'_> {
    fn from(column: &Column) -> Self {
        Self::Device(column.clone())
    }
}
