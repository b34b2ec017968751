//! What every call does around the core's function: copy the arrays in, make room, hand fresh arrays out.
//!
//! The kernel is called through a pointer, so that this code exists once per number of arrays and not once per formula.

use alloc::vec::Vec;
use core::array;

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
pub(crate) fn arrays<R: Real, const N: usize>(input: &JsValue, keys: [&str; N]) -> Result<[Vec<R>; N]> {
    let mut arrays = [const { Vec::new() }; N];
    read_arrays(input, &keys, &mut arrays)?;
    Ok(arrays)
}

#[inline(never)]
fn read_arrays<R: Real>(input: &JsValue, keys: &[&str], arrays: &mut [Vec<R>]) -> Result<()> {
    let input = Fields::input("input", input)?;
    for (array, key) in arrays.iter_mut().zip(keys) {
        *array = input.array(key)?;
    }
    Ok(())
}

/// An input that is one array.
#[inline(never)]
pub(crate) fn array<R: Real>(parameter: &str, value: &JsValue) -> Result<[Vec<R>; 1]> {
    Ok([read(parameter, value)?])
}

/// Runs a kernel over a batch and gives its outputs as fresh arrays.
pub(crate) fn call<R: Real, const IN: usize, const OUT: usize>(
    batch: &JsValue,
    inputs: [Vec<R>; IN],
    size: Size,
    kernel: Kernel<'_, R, IN, OUT>,
) -> Result<[JsValue; OUT]> {
    let (mut outputs, mut written) = ([const { Vec::new() }; OUT], [const { JsValue::UNDEFINED }; OUT]);
    run(
        batch,
        &inputs,
        &mut outputs,
        size,
        &mut written,
        &mut |batch: &tokenwise::Batch<'_>, outputs: &mut [Vec<R>]| {
            let mut outputs = outputs.iter_mut();
            kernel(
                batch,
                array::from_fn(|input| inputs[input].as_slice()),
                array::from_fn(|_| outputs.next().map_or(&mut [] as &mut [R], Vec::as_mut_slice)),
            )
        },
    )?;
    Ok(written)
}

/// A kernel with its inputs. Not `FnMut`: its tables would hold a second function for every kernel.
trait Run<R> {
    fn run(&mut self, batch: &tokenwise::Batch<'_>, outputs: &mut [Vec<R>]) -> tokenwise::Result<()>;
}

impl<R, F: FnMut(&tokenwise::Batch<'_>, &mut [Vec<R>]) -> tokenwise::Result<()>> Run<R> for F {
    fn run(&mut self, batch: &tokenwise::Batch<'_>, outputs: &mut [Vec<R>]) -> tokenwise::Result<()> {
        self(batch, outputs)
    }
}

#[inline(never)]
fn run<R: Real>(
    batch: &JsValue,
    inputs: &[Vec<R>],
    outputs: &mut [Vec<R>],
    size: Size,
    written: &mut [JsValue],
    kernel: &mut dyn Run<R>,
) -> Result<()> {
    let batch = Owned::read(batch)?;
    let batch = batch.view()?;
    let len = match size {
        Size::Tokens => batch.tokens(),
        Size::Sequences => batch.sequences(),
        Size::First => inputs.first().map_or(0, Vec::len),
    };
    for output in outputs.iter_mut() {
        *output = zeros(len)?;
    }
    kernel.run(&batch, outputs)?;
    for (written, output) in written.iter_mut().zip(outputs) {
        *written = R::array(output);
    }
    Ok(())
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
