//! Arrays of other libraries through DLPack: those in half precision, since NumPy has no bfloat16 and refuses it, and
//! tensors of torch, whose methods would take longer than a small formula.

use std::{
    ffi::{c_int, c_void},
    slice,
};

use numpy::{
    ndarray::{ArrayView1, ArrayViewD, IxDyn},
    Element, PyArray1, PyArrayDyn,
};
use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    intern,
    prelude::*,
    sync::PyOnceLock,
    types::{PyCapsule, PyDict, PyType},
};

/// `kDLCPU`, `kDLCUDAHost` (memory of the host that a device can read).
const HOST: [i32; 2] = [1, 3];
/// `kDLInt`, `kDLFloat`, `kDLBfloat` and `kDLBool`.
const INT: u8 = 0;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const BOOL: u8 = 6;

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

/// What a type of tensors offers to other native code: `DLPackExchangeAPI` of DLPack 1.3, up to the function we call.
#[repr(C)]
struct Exchange {
    major: u32,
    minor: u32,
    previous: *const c_void,
    allocate: *const c_void,
    managed_from_object: *const c_void,
    object_from_managed: *const c_void,
    tensor_from_object: Option<Convert>,
}

/// Fills a struct that borrows from the object.
type Convert = unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int;

/// `torch.Tensor`, and its conversion if it has one (torch 2.10 or later).
struct Torch {
    tensor: Py<PyType>,
    convert: Option<Convert>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

impl Torch {
    /// `None` if the caller has not imported torch.
    fn get(py: Python<'_>) -> PyResult<Option<&Self>> {
        if let Some(known) = TORCH.get(py) {
            return Ok(Some(known));
        }
        let modules = py.import("sys")?.getattr("modules")?;
        let Ok(torch) = modules.get_item("torch") else { return Ok(None) };
        let Some(tensor) = torch.getattr_opt("Tensor")? else { return Ok(None) };
        let tensor = tensor.cast_into::<PyType>()?;
        let mut convert = None;
        if let Some(Ok(capsule)) =
            tensor.getattr_opt("__dlpack_c_exchange_api__")?.map(|found| found.cast_into::<PyCapsule>())
        {
            let pointer = capsule.pointer_checked(Some(c"dlpack_exchange_api"))?.cast::<Exchange>();
            // SAFETY: a capsule of this name points to such a struct, which lives as long as the process; the first
            // field of all versions is the version, and the layout is that of version 1.
            let exchange = unsafe { pointer.as_ref() };
            convert = exchange.tensor_from_object.filter(|_| exchange.major == 1);
        }
        Ok(Some(TORCH.get_or_init(py, || Self { tensor: tensor.unbind(), convert })))
    }
}

/// An array of NumPy over the memory of a tensor of torch; `None` for anything else, and for a tensor that is not
/// plain: on a device, with gaps, of another type, or of a subclass, which may have no memory at all.
pub(crate) fn array_of_tensor<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = given.py();
    let Some(Torch { tensor, convert: Some(convert) }) = Torch::get(py)? else { return Ok(None) };
    // the numbers of a view with the negative bit are not those in memory
    if !given.get_type().is(tensor) || given.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
        return Ok(None);
    }
    let mut found = DlTensor {
        data: std::ptr::null_mut(),
        device_type: 0,
        device_id: 0,
        ndim: 0,
        code: 0,
        bits: 0,
        lanes: 0,
        shape: std::ptr::null(),
        strides: std::ptr::null(),
        byte_offset: 0,
    };
    // SAFETY: the function is that of the type of `given`, the interpreter is held, and `found` is the struct that it
    // fills.
    if unsafe { convert(given.as_ptr().cast(), &mut found) } != 0 {
        drop(PyErr::take(py)); // Python says what is wrong with the tensor
        return Ok(None);
    }
    if !HOST.contains(&found.device_type) || found.lanes != 1 {
        return Ok(None);
    }
    match (found.code, found.bits) {
        (FLOAT, 32) => whole::<f32>(given, &found),
        (FLOAT, 64) => whole::<f64>(given, &found),
        (INT, 64) => whole::<i64>(given, &found),
        (BOOL, 8) => whole::<bool>(given, &found),
        _ => Ok(None),
    }
}

/// The array of a tensor without gaps, which `owner` keeps.
fn whole<'py, T: Element>(owner: &Bound<'py, PyAny>, tensor: &DlTensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    let shape = sizes(tensor.shape, tensor.ndim)?;
    let Some(len) = span(&shape, None) else { return Ok(None) };
    if !tensor.strides.is_null() && len > 0 {
        let Ok(strides) = sizes(tensor.strides, tensor.ndim) else { return Ok(None) };
        let mut expected = 1;
        for (size, stride) in shape.iter().zip(strides).rev() {
            if *size > 1 && stride != expected {
                return Ok(None);
            }
            expected *= size;
        }
    }
    let data = tensor.data.cast::<u8>().wrapping_add(usize::try_from(tensor.byte_offset)?).cast::<T>();
    let entries: &[T] = if len == 0 {
        &[]
    } else if data.is_null() || !data.is_aligned() {
        return Ok(None);
    } else {
        // SAFETY: the tensor has `len` entries of this type from `data` on, aligned, and the array below keeps the
        // tensor. Like every array of a caller, nobody may write to it during the call.
        unsafe { slice::from_raw_parts(data, len) }
    };
    let Ok(view) = ArrayViewD::from_shape(IxDyn(&shape), entries) else { return Ok(None) };
    // SAFETY: `owner` keeps the memory of the tensor.
    Ok(Some(unsafe { PyArrayDyn::borrow_from_array(&view, owner.clone()) }.into_any()))
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
