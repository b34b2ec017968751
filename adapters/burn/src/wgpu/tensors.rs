//! Tensors as columns and columns as tensors.

use std::sync::Arc;

use burn::{
    backend::{
        wgpu::{AutoCompiler, CubeBackend, CubeTensor},
        Cube,
    },
    cubecl::wgpu::WgpuServer,
    tensor::{DType, Int, Tensor},
};
use tokenwise_gpu::{Column, Format, Recording};

use super::OnDevice;
use crate::{Error, Result};

impl OnDevice {
    /// The numbers of a tensor where burn has them, without a copy. burn does not change them while the column is held:
    /// it computes in place only what nobody else holds.
    ///
    /// The tensor may be part of a graph; the column is not. A tensor whose numbers do not lie one after the other, or
    /// that begins within a buffer where the device cannot bind it, is copied on the device first. f16 and bf16 stay
    /// what they are; tokenwise-gpu reads them as logits only.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] for a tensor of another device, [`Error::DType`] unless it is f32, f16 or bf16,
    /// [`Error::Buffer`] if burn does not give the buffer. `name` is that of the input in errors.
    pub fn column<const D: usize>(&self, name: &'static str, tensor: &Tensor<D>) -> Result<Column> {
        self.check_device(name, tensor.device())?;
        let format = match tensor.dtype() {
            DType::F32 => Format::Word,
            DType::F16 => Format::F16,
            DType::BF16 => Format::Bf16,
            got => return Err(Error::DType { input: name, expected: "f32, f16 or bf16", got }),
        };
        let len = tensor.shape().num_elements();
        let flat = tensor.clone().inner().reshape([len]);
        let tensor = flat.try_into_primitive::<Cube>().map_err(|error| not_here(name, error))?;
        let client = tensor.client.clone();
        self.bound(name, format, client.resolve_tensor_float::<CubeBackend>(tensor))
    }

    /// Ids of tokens, as [`Self::column`].
    ///
    /// # Errors
    ///
    /// [`Error::Device`] for a tensor of another device, [`Error::DType`] unless it is i32 or u32, which burn has on
    /// wgpu by default; [`Error::Buffer`].
    pub fn id_column<const D: usize>(&self, name: &'static str, tensor: &Tensor<D, Int>) -> Result<Column> {
        self.check_device(name, tensor.device())?;
        let got = tensor.dtype();
        if !matches!(got, DType::I32 | DType::U32) {
            return Err(Error::DType { input: name, expected: "i32 or u32", got });
        }
        let len = tensor.shape().num_elements();
        let flat = tensor.clone().inner().reshape([len]);
        let tensor = flat.try_into_primitive::<Cube>().map_err(|error| not_here(name, error))?;
        let client = tensor.client.clone();
        self.bound(name, Format::Word, client.resolve_tensor_int::<CubeBackend>(tensor))
    }

    /// A new tensor that a recording fills with a column of `f32`, by a copy on the device. Its numbers are there when
    /// the recording has been submitted; before that they are arbitrary.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if `dims` do not hold as many numbers as the column has, [`Error::Gpu`] if it is in half
    /// precision, [`Error::Buffer`] if burn does not give the buffer.
    pub fn tensor<const D: usize>(
        &self,
        recording: &mut Recording<'_>,
        column: &Column,
        dims: [usize; D],
    ) -> Result<Tensor<D>> {
        let len = column.len() as usize;
        if dims.iter().try_fold(1_usize, |n, &dim| n.checked_mul(dim)) != Some(len) {
            let expected = format!("sizes that multiply to {len}");
            return Err(Error::Shape { what: "dims".to_owned(), expected, got: dims.to_vec() });
        }
        let (tensor, target) = self.room(len)?;
        recording.copy_to(column, &target)?;
        Ok(tensor.reshape(dims))
    }

    /// A new flat tensor and the column to write its numbers through.
    pub(super) fn room(&self, len: usize) -> Result<(Tensor<1>, Column)> {
        let tensor = Tensor::<1>::empty([len], (&self.0.device, DType::F32));
        let column = self.column("out", &tensor)?;
        Ok((tensor, column))
    }

    /// Binds the buffer of a tensor. burn's operations that wait to be submitted are submitted by that.
    fn bound(&self, name: &'static str, format: Format, tensor: CubeTensor) -> Result<Column> {
        let len = tensor.meta.num_elements() as u64;
        let resource = |tensor: &CubeTensor| {
            let found = tensor.client.get_resource::<WgpuServer<AutoCompiler>>(tensor.handle.clone());
            found.map_err(|error| buffer(name, format!("{error:?}")))
        };
        let aligned = u64::from(self.gpu().limits().min_storage_buffer_offset_alignment);
        let fits = |tensor: &CubeTensor, offset: u64| tensor.is_contiguous() && offset.is_multiple_of(aligned);
        let (mut tensor, mut found) = (tensor.clone(), resource(&tensor)?);
        if !fits(&tensor, found.resource().offset) {
            tensor = tensor.copy();
            found = resource(&tensor)?;
        }
        let (bound, offset) = (found.resource().buffer.clone(), found.resource().offset);
        if !fits(&tensor, offset) {
            return Err(buffer(name, format!("starts at byte {offset}, which is no multiple of {aligned}")));
        }
        let entry = if format == Format::Word { 4 } else { 2 };
        let column = Column::from_buffer_of(format, bound, offset / entry, len)?;
        // burn reuses the range when nothing holds it
        Ok(column.owned_by(Arc::new((tensor, found))))
    }
}

fn not_here(input: &str, error: impl std::fmt::Debug) -> Error {
    buffer(input, format!("{error:?}"))
}

fn buffer(input: &str, reason: String) -> Error {
    Error::Buffer { input: input.to_owned(), reason }
}
