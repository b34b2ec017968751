//! Slices of candle's tensors on the CPU.

use candle_core::{bail, CpuStorage, Layout, Result, Storage, Tensor};

/// The numbers of a contiguous storage.
pub(crate) fn contiguous<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (layout.contiguous_offsets(), storage) {
        (Some((start, end)), CpuStorage::F32(numbers)) => Ok(&numbers[start..end]),
        _ => bail!("expected contiguous f32 numbers"),
    }
}

/// Calls a function with the numbers of a tensor, copied only if they are not contiguous.
pub(crate) fn with_slice<T>(tensor: &Tensor, f: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => f(contiguous(storage, layout)?),
        _ => bail!("expected a tensor on the CPU"),
    }
}
