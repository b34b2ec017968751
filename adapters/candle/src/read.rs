//! The numbers of a tensor as a slice.

use std::ops::Range;

use candle_core::{CpuStorage, DType, Storage, StorageRef, Tensor, WithDType};

use crate::{Error, Result};

/// The numbers of a tensor: borrowed where the layout allows, otherwise a copy.
pub(crate) enum Numbers<'a, T> {
    /// A contiguous part of the storage, which stays locked for reading.
    Borrowed(StorageRef<'a>, Range<usize>),
    /// A copy in row-major order.
    Owned(Vec<T>),
}

impl<'a, T: WithDType> Numbers<'a, T> {
    /// The tensor must have type `T`.
    pub(crate) fn of(tensor: &'a Tensor) -> Result<Self> {
        let (storage, layout) = tensor.storage_and_layout();
        match (&*storage, layout.contiguous_offsets()) {
            (Storage::Cpu(_), Some((start, end))) => Ok(Self::Borrowed(storage, start..end)),
            (Storage::Cpu(cpu), None) => Ok(Self::Owned(strided(cpu, tensor)?)),
            _ => {
                drop(storage);
                Ok(Self::Owned(tensor.flatten_all()?.to_vec1()?))
            }
        }
    }

    pub(crate) fn slice(&self) -> Result<&[T]> {
        match self {
            Self::Borrowed(storage, range) => match &**storage {
                Storage::Cpu(cpu) => part(cpu, range.clone()),
                _ => Ok(&[]),
            },
            Self::Owned(numbers) => Ok(numbers),
        }
    }
}

fn part<T: WithDType>(cpu: &CpuStorage, range: Range<usize>) -> Result<&[T]> {
    let all: &[T] = cpu.as_slice()?;
    let len = all.len();
    let short = tokenwise::Error::Length { what: "storage", expected: range.end, got: len };
    all.get(range).ok_or(Error::Core(short))
}

fn strided<T: WithDType>(cpu: &CpuStorage, tensor: &Tensor) -> Result<Vec<T>> {
    let all: &[T] = cpu.as_slice()?;
    Ok(tensor.strided_index().filter_map(|index| all.get(index).copied()).collect())
}

/// The tensor in the type that it is computed in: f32 for half-precision numbers. Keeps the gradient.
pub(crate) fn computed(input: &'static str, tensor: &Tensor) -> Result<Tensor> {
    match tensor.dtype() {
        DType::F32 | DType::F64 => Ok(tensor.clone()),
        DType::BF16 | DType::F16 => Ok(tensor.to_dtype(DType::F32)?),
        got => Err(Error::DType { input, expected: "f32, f64, bf16 or f16".into(), got }),
    }
}

/// Ids, lengths or counts, from unsigned or signed whole numbers.
pub(crate) fn whole<T: TryFrom<i64>>(input: &'static str, tensor: &Tensor) -> Result<Vec<T>> {
    if !matches!(tensor.dtype(), DType::U8 | DType::U32 | DType::I64) {
        return Err(Error::DType { input, expected: "u8, u32 or i64".into(), got: tensor.dtype() });
    }
    let numbers = tensor.flatten_all()?.to_dtype(DType::I64)?.to_vec1::<i64>()?;
    let convert = |(index, got)| T::try_from(got).map_err(|_| Error::Entry { input, index, got });
    numbers.into_iter().enumerate().map(convert).collect()
}

/// Yes where an entry is not 0.
pub(crate) fn flags(input: &'static str, tensor: &Tensor) -> Result<Vec<bool>> {
    match tensor.dtype() {
        DType::U8 | DType::U32 | DType::I64 | DType::F32 | DType::F64 => {
            Ok(tensor.ne(0.0)?.flatten_all()?.to_vec1::<u8>()?.into_iter().map(|flag| flag != 0).collect())
        }
        got => Err(Error::DType { input, expected: "u8, u32, i64, f32 or f64".into(), got }),
    }
}
