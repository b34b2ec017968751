//! Data on the device: [`Column`], and [`Input`], which may also be host data that is still to be sent.

use std::{any::Any, sync::Arc};

use half::{bf16, f16};
use wgpu::{Buffer, BufferBinding, BufferUsages};

use crate::{
    context::Gpu,
    error::GpuError,
    pool::{Pooled, Use, WORD},
};

/// The largest alignment of a binding that a device may ask for.
pub(crate) const ALIGNED_BYTES: u64 = 256;

/// How the entries of a [`Column`] are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One per word of 32 bits: `f32`, or `u32` where a kernel reads ids or counts.
    Word,
    /// Two per word, the first in the low half: logits in half precision.
    F16,
    /// As [`Self::F16`], in bfloat16.
    Bf16,
}

impl Format {
    /// Bytes of one entry.
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Self::Word => WORD,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Words that hold this many entries; saturates.
    const fn words(self, len: u64) -> u64 {
        match self {
            Self::Word => len,
            Self::F16 | Self::Bf16 => len.div_ceil(2),
        }
    }
}

/// Numbers on the device: an output of a kernel, sent host data, or a range of a caller's own buffer. Clones share the
/// data. Outputs are `f32`; half precision is for logits only, and other kernels refuse it.
#[derive(Clone, Debug)]
pub struct Column {
    source: Source,
    /// In bytes.
    offset: u64,
    /// Entries.
    len: u64,
    format: Format,
}

#[derive(Clone, Debug)]
enum Source {
    Pooled(Arc<Pooled>),
    Foreign { buffer: Buffer, _owner: Option<Arc<dyn Any + Send + Sync>> },
}

impl Column {
    /// `len` words of the caller's buffer, from word `first` on, such as a tensor that a trainer holds on the same
    /// device ([`Gpu::from_device`]). Kernels read it where it is; nothing is copied.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the buffer lacks the usages `STORAGE` and `COPY_SRC`, or if the range exceeds the
    /// buffer. Kernels refuse a column that does not start at a multiple of the device's
    /// `min_storage_buffer_offset_alignment`, which is at most 64 words.
    pub fn from_buffer(buffer: Buffer, first: u64, len: u64) -> Result<Self, GpuError> {
        Self::from_buffer_of(Format::Word, buffer, first, len)
    }

    /// As [`Self::from_buffer`], with entries of another format: logits in half precision. `first` and `len` count
    /// entries.
    ///
    /// # Errors
    ///
    /// As [`Self::from_buffer`]; the first entry must be the first of a word, and the last word, of which the last
    /// entry may be a half, within the buffer.
    pub fn from_buffer_of(format: Format, buffer: Buffer, first: u64, len: u64) -> Result<Self, GpuError> {
        if !buffer.usage().contains(BufferUsages::STORAGE | BufferUsages::COPY_SRC) {
            return Err(GpuError::Unsupported("a column needs a buffer with usages STORAGE and COPY_SRC"));
        }
        if !first.is_multiple_of(WORD / format.bytes()) {
            return Err(GpuError::Unsupported("a column starts with a word of its buffer"));
        }
        let end = || first.checked_mul(format.bytes())?.checked_add(format.words(len).checked_mul(WORD)?);
        if end().is_none_or(|end| end > buffer.size()) {
            return Err(GpuError::Unsupported("a column ends within its buffer"));
        }
        Ok(Self { source: Source::Foreign { buffer, _owner: None }, offset: first * format.bytes(), len, format })
    }

    /// The same column of a caller's buffer, which holds `owner` for as long as it or a clone of it is held, by the
    /// caller or by work on the device: a trainer may otherwise give the range to another tensor when it drops its own.
    #[must_use]
    pub fn owned_by(self, owner: Arc<dyn Any + Send + Sync>) -> Self {
        let source = match self.source {
            Source::Foreign { buffer, .. } => Source::Foreign { buffer, _owner: Some(owner) },
            pooled @ Source::Pooled(_) => pooled,
        };
        Self { source, ..self }
    }

    /// `len` words with arbitrary contents.
    pub(crate) fn scratch(gpu: &Gpu, len: u64) -> Result<Self, GpuError> {
        Self::scratch_of(Format::Word, gpu, len)
    }

    /// `len` entries with arbitrary contents.
    pub(crate) fn scratch_of(format: Format, gpu: &Gpu, len: u64) -> Result<Self, GpuError> {
        let (bytes, limit) =
            (format.words(len).saturating_mul(WORD), gpu.limits().max_buffer_size.min(u32::MAX.into()));
        if bytes > limit {
            return Err(GpuError::Limit { what: "one buffer, in bytes", needed: bytes, limit });
        }
        let pooled = gpu.take(Use::Storage, bytes)?;
        Ok(Self { source: Source::Pooled(Arc::new(pooled)), offset: 0, len, format })
    }

    /// Number of entries.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no entries.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How the entries are stored.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Words that the entries take.
    pub(crate) const fn words(&self) -> u64 {
        self.format.words(self.len)
    }

    /// Bytes of these words.
    pub(crate) const fn bytes(&self) -> u64 {
        self.words() * WORD
    }

    /// The buffer that holds the entries, and the first byte, for work of the caller's own on the device.
    pub fn buffer(&self) -> (&Buffer, u64) {
        let buffer = match &self.source {
            Source::Pooled(pooled) => pooled.buffer(),
            Source::Foreign { buffer, .. } => buffer,
        };
        (buffer, self.offset)
    }

    /// A part of this column, which begins at a whole word.
    pub(crate) fn part(&self, first: u64, len: u64) -> Self {
        let offset = self.offset + first * self.format.bytes();
        Self { source: self.source.clone(), offset, len, format: self.format }
    }

    pub(crate) fn binding(&self) -> BufferBinding<'_> {
        let (buffer, offset) = self.buffer();
        // an empty range cannot be bound, and every buffer has at least one word
        BufferBinding { buffer, offset, size: wgpu::BufferSize::new(self.bytes().max(WORD)) }
    }
}

/// What a kernel reads: host data, which is sent when the call has been checked, or a [`Column`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Host numbers.
    Host(&'a [f32]),
    /// Host words: token ids, counts.
    Words(&'a [u32]),
    /// Host logits in half precision.
    F16(&'a [f16]),
    /// Host logits in bfloat16.
    Bf16(&'a [bf16]),
    /// Data on the device.
    Device(Column),
}

impl Input<'_> {
    /// Number of entries.
    pub const fn len(&self) -> u64 {
        match self {
            Self::Host(slice) => slice.len() as u64,
            Self::Words(slice) => slice.len() as u64,
            Self::F16(slice) => slice.len() as u64,
            Self::Bf16(slice) => slice.len() as u64,
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

impl<'a> From<&'a [f16]> for Input<'a> {
    fn from(slice: &'a [f16]) -> Self {
        Self::F16(slice)
    }
}

impl<'a> From<&'a Vec<f16>> for Input<'a> {
    fn from(vec: &'a Vec<f16>) -> Self {
        Self::F16(vec)
    }
}

impl<'a> From<&'a [bf16]> for Input<'a> {
    fn from(slice: &'a [bf16]) -> Self {
        Self::Bf16(slice)
    }
}

impl<'a> From<&'a Vec<bf16>> for Input<'a> {
    fn from(vec: &'a Vec<bf16>) -> Self {
        Self::Bf16(vec)
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
