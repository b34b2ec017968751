//! What every call does around the core's function: copy the arrays in, make room, hand fresh arrays out.
//!
//! The kernel is called through a pointer, so that this code exists once per number of arrays and not once per formula.

use wasm_bindgen::JsValue;

use crate::{
    array::{flag_array, read, zeros, Real},
    batch::Owned,
    error::Result,
    object::Fields,
};

/// How many entries the outputs have.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// One per token slot.
    Tokens,
    /// One per sequence.
    Sequences,
    /// As many as the first input.
    First,
}

/// A call of the core: the batch, the inputs, the outputs.
pub(crate) type Kernel<'k, R, const IN: usize, const OUT: usize> =
    &'k mut dyn FnMut(&tokenwise::Batch<'_>, [&[R]; IN], [&mut [R]; OUT]) -> tokenwise::Result<()>;

/// The same without a batch.
pub(crate) type FreeKernel<'k, R, const IN: usize> = &'k mut dyn FnMut([&[R]; IN], &mut [R]) -> tokenwise::Result<()>;

/// A call of the core that writes one flag per token.
pub(crate) type MaskKernel<'k, R, const IN: usize> =
    &'k mut dyn FnMut(&tokenwise::Batch<'_>, [&[R]; IN], &mut [bool]) -> tokenwise::Result<()>;

/// The fields of an input object as arrays.
#[inline(never)]
pub(crate) fn arrays<R: Real, const N: usize>(input: &JsValue, keys: [&str; N]) -> Result<[Vec<R>; N]> {
    let input = Fields::input("input", input)?;
    let mut arrays = [const { Vec::new() }; N];
    for (array, key) in arrays.iter_mut().zip(keys) {
        *array = input.array(key)?;
    }
    Ok(arrays)
}

/// An input that is one array.
#[inline(never)]
pub(crate) fn array<R: Real>(parameter: &str, value: &JsValue) -> Result<[Vec<R>; 1]> {
    Ok([read(parameter, value)?])
}

/// Runs a kernel over a batch and gives its outputs as fresh arrays.
#[inline(never)]
pub(crate) fn call<R: Real, const IN: usize, const OUT: usize>(
    batch: &JsValue,
    inputs: [Vec<R>; IN],
    size: Size,
    kernel: Kernel<'_, R, IN, OUT>,
) -> Result<[JsValue; OUT]> {
    let batch = Owned::read(batch)?;
    let batch = batch.view()?;
    let len = match size {
        Size::Tokens => batch.tokens(),
        Size::Sequences => batch.sequences(),
        Size::First => inputs.first().map_or(0, Vec::len),
    };
    let mut outputs = [const { Vec::new() }; OUT];
    for output in &mut outputs {
        *output = zeros(len)?;
    }
    kernel(&batch, inputs.each_ref().map(Vec::as_slice), outputs.each_mut().map(Vec::as_mut_slice))?;
    Ok(outputs.map(|output| R::array(&output)))
}

/// Runs a kernel whose output is one array.
pub(crate) fn call_one<R: Real, const IN: usize>(
    batch: &JsValue,
    inputs: [Vec<R>; IN],
    size: Size,
    kernel: Kernel<'_, R, IN, 1>,
) -> Result<JsValue> {
    call(batch, inputs, size, kernel).map(|[output]| output)
}

/// Runs a kernel over sequences: the output has as many entries as the first input.
#[inline(never)]
pub(crate) fn call_free<R: Real, const IN: usize>(
    inputs: [Vec<R>; IN],
    kernel: FreeKernel<'_, R, IN>,
) -> Result<JsValue> {
    let mut output = zeros(inputs.first().map_or(0, Vec::len))?;
    kernel(inputs.each_ref().map(Vec::as_slice), &mut output)?;
    Ok(R::array(&output))
}

/// Runs a kernel that gives numbers only.
pub(crate) fn measure<R: Real, const IN: usize>(
    batch: &JsValue,
    inputs: [Vec<R>; IN],
    kernel: Kernel<'_, R, IN, 0>,
) -> Result<()> {
    call(batch, inputs, Size::Tokens, kernel).map(|[]| ())
}

/// Runs a kernel that gives a mask: 0 or 1 for every token slot.
#[inline(never)]
pub(crate) fn call_mask<R: Real, const IN: usize>(
    batch: &JsValue,
    inputs: [Vec<R>; IN],
    kernel: MaskKernel<'_, R, IN>,
) -> Result<JsValue> {
    let batch = Owned::read(batch)?;
    let batch = batch.view()?;
    let mut keep = zeros(batch.tokens())?;
    kernel(&batch, inputs.each_ref().map(Vec::as_slice), &mut keep)?;
    Ok(flag_array(&keep))
}
