//! Strided, shifted and packed tensors give the same bits.

use candle_core::{DType, Device, Tensor, Var};
use tokenwise::{Batch, Layout, Mask};
use tokenwise_candle::{kept, ppo_clip, PolicyInput};

use crate::{
    plain::cases,
    tape::{adapted, flat, Dropped},
};

/// The same numbers in another order of the storage.
fn strided(tensor: &Tensor) -> Tensor {
    if tensor.rank() < 2 {
        return tensor.clone();
    }
    let strided = tensor.transpose(0, 1).unwrap().contiguous().unwrap().transpose(0, 1).unwrap();
    assert!(!strided.is_contiguous());
    strided
}

/// The same numbers in the middle of a larger storage.
fn shifted(tensor: &Tensor) -> Tensor {
    let around = tensor.ones_like().unwrap();
    Tensor::cat(&[&around, tensor, &around], 0).unwrap().narrow(0, tensor.dims()[0], tensor.dims()[0]).unwrap()
}

#[test]
fn strides_and_offsets_do_not_matter() {
    for case in cases() {
        let (plain, expected) = adapted(&case, DType::F32, Dropped::Nan, Clone::clone).unwrap();
        for view in [strided, shifted] {
            let (loss, gradients) = adapted(&case, DType::F32, Dropped::Nan, view).unwrap();
            assert_eq!(loss.value().unwrap(), plain.value().unwrap(), "{}", case.title());
            assert_eq!(gradients, expected, "{}", case.title());
        }
    }
}

#[test]
fn packed_tensors_are_flat() {
    let numbers = |x: &[f32]| Tensor::new(x, &Device::Cpu).unwrap();
    let (old, advantages) = (numbers(&[-1.0, -2.0, -0.5, -1.5, -1.0]), numbers(&[1.0, -1.0, 2.0, 0.5, -0.5]));
    let new = Var::new(&[-1.1_f32, -1.9, -0.4, -1.6, -1.2], &Device::Cpu).unwrap();
    let batch = Batch::new(Layout::packed(&[0, 3, 5]).unwrap(), Mask::new(&[true; 5])).unwrap();
    let packed = ppo_clip(&batch, PolicyInput::new(&new, &old, &advantages), &Default::default()).unwrap();

    let pad = |x: &Tensor| {
        let gap = Tensor::new(&[f32::NAN], &Device::Cpu).unwrap();
        Tensor::cat(&[x, &gap], 0).unwrap().reshape((2, 3)).unwrap()
    };
    let mask = Tensor::new(&[[1_u8, 1, 1], [1, 1, 0]], &Device::Cpu).unwrap();
    let keep = kept(&mask).unwrap();
    let batch = Batch::new(Layout::padded(2, 3).unwrap(), Mask::new(&keep)).unwrap();
    let padded = Var::from_tensor(&pad(&new)).unwrap();
    let (old, advantages) = (pad(&old), pad(&advantages));
    let input = PolicyInput::new(&padded, &old, &advantages);
    let loss = ppo_clip(&batch, input, &Default::default()).unwrap();

    assert_eq!(packed.value().unwrap(), loss.value().unwrap());
    let gradient = flat(packed.backward().unwrap().get(&new), &new);
    assert_eq!(flat(loss.backward().unwrap().get(&padded), &padded)[..5], gradient);
}
