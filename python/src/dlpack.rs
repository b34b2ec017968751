//! Arrays in half precision of any library, through DLPack: NumPy has no bfloat16 and refuses it.

use std::{ffi::c_void, slice};

use numpy::{ndarray::ArrayView1, PyArray1};
use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    intern,
    prelude::*,
    types::{PyCapsule, PyDict},
};

/// `kDLCPU`, `kDLCUDAHost` (memory of the host that a device can read).
const HOST: [i32; 2] = [1, 3];
/// `kDLFloat` and `kDLBfloat`.
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;

/// What follows is the layout of DLPack 1.0.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// The part of `DLManagedTensorVersioned` before and including its tensor. In `DLManagedTensor` the tensor comes first.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    manager_ctx: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: DlTensor,
}

/// The bits of an array, its shape, its strides in entries (`None`: row after row) and the name of its type.
type Bits<'py> = (Bound<'py, PyArray1<u16>>, Vec<usize>, Option<Vec<usize>>, &'static str);

/// The bits of an array of bfloat16 or float16 in the memory of the host, not copied; `None` for other types.
#[pyfunction]
pub(crate) fn half_bits_of_dlpack<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bits<'py>>> {
    let py = given.py();
    let (device, _): (i32, i32) = given.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    if !HOST.contains(&device) {
        return Err(PyBufferError::new_err("an array on a device"));
    }
    let capsule = capsule(given)?;
    let tensor = if capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        let pointer = capsule.pointer_checked(Some(c"dltensor_versioned"))?.cast::<Versioned>();
        // SAFETY: a capsule of this name points to such a struct, valid while the capsule lives; the first field of all
        // versions is the version.
        let versioned = unsafe { pointer.as_ref() };
        if versioned.major != 1 {
            return Err(PyBufferError::new_err("a version of DLPack other than 1"));
        }
        &versioned.tensor
    } else {
        let pointer = capsule.pointer_checked(Some(c"dltensor"))?.cast::<DlTensor>();
        // SAFETY: a capsule of this name points to a struct that begins with the tensor, valid while the capsule lives.
        unsafe { pointer.as_ref() }
    };
    let kind = match (tensor.code, tensor.bits, tensor.lanes) {
        (FLOAT, 16, 1) => "f16",
        (BFLOAT, 16, 1) => "bf16",
        _ => return Ok(None),
    };
    let shape = sizes(tensor.shape, tensor.ndim)?;
    let strides = if tensor.strides.is_null() { None } else { Some(sizes(tensor.strides, tensor.ndim)?) };
    let span = span(&shape, strides.as_deref()).ok_or_else(|| PyBufferError::new_err("an array that is too large"))?;
    let data = tensor.data.cast::<u8>().wrapping_add(usize::try_from(tensor.byte_offset)?).cast::<u16>();
    let entries: &[u16] = if span == 0 {
        &[]
    } else if data.is_null() || !data.is_aligned() {
        return Err(PyBufferError::new_err("memory that is not aligned"));
    } else {
        // SAFETY: the producer vouches for `span` entries from `data` on while the capsule lives, which the array below
        // keeps; they are aligned, and any bits are a `u16`. Like every array of a caller, nobody may write to it
        // during the call.
        unsafe { slice::from_raw_parts(data, span) }
    };
    // SAFETY: the capsule keeps the memory. It is not consumed (renamed), so that its own destructor frees it.
    let array = unsafe { PyArray1::borrow_from_array(&ArrayView1::from(entries), capsule.into_any()) };
    Ok(Some((array, shape, strides, kind)))
}

/// Older libraries know no versions.
fn capsule<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
    let py = given.py();
    let version = PyDict::new(py);
    version.set_item(intern!(py, "max_version"), (1, 0))?;
    let export = given.getattr(intern!(py, "__dlpack__"))?;
    let capsule = match export.call((), Some(&version)) {
        Err(error) if error.is_instance_of::<PyTypeError>(py) => export.call0()?,
        other => other?,
    };
    Ok(capsule.cast_into::<PyCapsule>()?)
}

fn sizes(numbers: *const i64, len: i32) -> PyResult<Vec<usize>> {
    let len = usize::try_from(len)?;
    if len == 0 || numbers.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the producer vouches for `ndim` numbers.
    let numbers = unsafe { slice::from_raw_parts(numbers, len) };
    numbers
        .iter()
        .map(|number| usize::try_from(*number).map_err(|_| PyBufferError::new_err("an array with negative strides")))
        .collect()
}

/// How many entries there are from the first to the last.
fn span(shape: &[usize], strides: Option<&[usize]>) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let Some(strides) = strides else {
        return shape.iter().try_fold(1usize, |span, size| span.checked_mul(*size));
    };
    let last = shape
        .iter()
        .zip(strides)
        .try_fold(0usize, |last, (size, stride)| last.checked_add(stride.checked_mul(size - 1)?))?;
    last.checked_add(1).filter(|span| *span <= isize::MAX as usize / 2)
}
