//! Formulas on burn's wgpu device against the host, and that no tensor leaves the device.

mod buffers;
mod formulas;
mod policy;
mod refusals;

use std::sync::OnceLock;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use tokenwise::{Batch, Layout, Mask};
use tokenwise_burn::wgpu::OnDevice;
use tokenwise_gpu::tolerance::Tolerance;

/// burn initializes a device once in a process.
fn on_device() -> &'static OnDevice {
    static DEVICE: OnceLock<OnDevice> = OnceLock::new();
    DEVICE.get_or_init(|| OnDevice::new().unwrap())
}

fn device() -> Device {
    on_device().device().autodiff()
}

fn floats(numbers: &[f32]) -> Tensor<1> {
    Tensor::from_data(TensorData::new(numbers.to_vec(), [numbers.len()]), (&device(), DType::F32))
}

fn ids(numbers: &[u32]) -> Tensor<1, Int> {
    let ids: Vec<i32> = numbers.iter().map(|&id| id as i32).collect();
    Tensor::from_data(TensorData::new(ids, [numbers.len()]), (&device(), DType::I32))
}

fn host<const D: usize>(tensor: &Tensor<D>) -> Vec<f32> {
    tensor.try_to_vec_as::<f32>().unwrap()
}

/// Numbers between −1 and 1, the same in every run.
fn random(seed: u32, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_769).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// A mask that drops every seventh slot.
fn mask(len: usize) -> Vec<bool> {
    (0..len).map(|slot| slot % 7 != 3).collect()
}

fn batch(rows: usize, keep: &[bool]) -> Batch<'_> {
    Batch::new(Layout::padded(rows, keep.len() / rows).unwrap(), Mask::new(keep)).unwrap()
}

/// NaN where a slot is dropped.
fn poisoned(keep: &[bool], mut numbers: Vec<f32>) -> Vec<f32> {
    numbers.iter_mut().zip(keep).filter(|(_, keep)| !**keep).for_each(|(number, _)| *number = f32::NAN);
    numbers
}

/// Fails unless each number is within the tolerance at the scale of all of them.
#[track_caller]
fn assert_within(what: &str, tolerance: Tolerance, expected: &[f64], got: &[f32], scale: f64) {
    assert_eq!(expected.len(), got.len(), "{what}");
    for (index, (&expected, &got)) in expected.iter().zip(got).enumerate() {
        let (error, allowed) = ((expected - f64::from(got)).abs(), tolerance.at(scale.max(expected.abs())));
        assert!(error <= allowed, "{what}[{index}]: expected {expected}, got {got}, off by {error:e} > {allowed:e}");
    }
}
