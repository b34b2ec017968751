//! Every loss and its gradient against candle's autodiff of the plain formula.

use candle_core::{DType, Device, Tensor, Var};
use tokenwise_candle::surrogate;
use tokenwise_catalogue::entries;

use crate::{
    plain::{cases, tolerance_in_f32, Case},
    tape::{adapted, assert_near, autodiff, flat, Dropped, Tape},
};

#[test]
fn every_loss_has_a_case() {
    let cases: Vec<Case<Tape>> = cases();
    for entry in entries().filter(|entry| entry.gradients().next().is_some()) {
        assert!(cases.iter().any(|case| case.name == entry.name), "{}", entry.name);
    }
}

fn check(dtype: DType, tolerance: impl Fn(&Case<Tape>) -> f64) {
    for case in cases() {
        let (title, tolerance) = (case.title(), tolerance(&case));
        let (value, expected) = autodiff(&case, dtype);
        // dropped slots hold NaN, which the plain formula could not survive
        let (loss, got) = adapted(&case, dtype, Dropped::Nan, Clone::clone).unwrap_or_else(|e| panic!("{title}: {e}"));
        assert_near(&title, &[value], &[loss.value().unwrap()], 10.0 * tolerance);
        let tensor = loss.tensor.to_dtype(DType::F64).unwrap().to_scalar::<f64>().unwrap();
        assert_near(&title, &[loss.value().unwrap()], &[tensor], tolerance);
        for ((expected, got), leaf) in expected.iter().zip(&got).zip(case.leaves()) {
            assert_near(&format!("{title}: ∂/∂{}", leaf.name), expected, got, tolerance);
        }
        assert!(expected.iter().flatten().any(|slope| *slope != 0.0), "{title}: nothing is tested");
    }
}

#[test]
fn gradients_are_those_of_autodiff_in_f32() {
    check(DType::F32, tolerance_in_f32);
}

#[test]
fn gradients_are_those_of_autodiff_in_f64() {
    check(DType::F64, |_| 1e-12);
}

/// The inputs are exact in f32, so both precisions compute the same: ours is not off by the rounding of a framework.
#[test]
fn gradients_in_f32_are_those_of_autodiff_in_f64() {
    for case in cases() {
        let (_, expected) = autodiff(&case, DType::F64);
        let (_, got) = adapted(&case, DType::F32, Dropped::Nan, Clone::clone).unwrap();
        for ((expected, got), leaf) in expected.iter().zip(&got).zip(case.leaves()) {
            assert_near(&format!("{}: ∂/∂{}", case.title(), leaf.name), expected, got, 1e-6);
        }
    }
}

#[test]
fn dropped_slots_change_nothing() {
    for case in cases() {
        let [clean, poisoned] = [Dropped::Numbers, Dropped::Nan]
            .map(|dropped| adapted(&case, DType::F32, dropped, Clone::clone).unwrap_or_else(|e| panic!("{e}")));
        assert_eq!(clean.1, poisoned.1, "{}", case.title());
        assert_eq!(clean.0.value().unwrap(), poisoned.0.value().unwrap(), "{}", case.title());
    }
}

#[test]
fn a_loss_can_be_scaled_and_added() {
    let x = Var::new(&[[-1.0_f32, -2.0, -0.5, -0.25]], &Device::Cpu).unwrap();
    let batch = tokenwise::Batch::new(tokenwise::Layout::padded(1, 4).unwrap(), tokenwise::Mask::new(&[true; 4]));
    let inputs = tokenwise_candle::Inputs::new().with("losses", x.as_tensor());
    let loss = tokenwise_candle::loss("aggregate", &batch.unwrap(), &inputs, &()).unwrap();
    let total = ((loss.tensor * 3.0).unwrap() + x.sum_all().unwrap()).unwrap();
    assert_eq!(flat(total.backward().unwrap().get(&x), &x), [1.75; 4]);
}

#[test]
fn half_precision_is_computed_in_f32() {
    for case in cases().iter().filter(|case| ["ppo_clip", "value_loss", "mixed_kl_topk"].contains(&case.name)) {
        let (loss, gradients) = adapted(case, DType::BF16, Dropped::Nan, Clone::clone).unwrap();
        assert_eq!(loss.tensor.dtype(), DType::F32);
        // the same numbers in f32, with a gradient that is rounded on its way to the leaf
        let rounded = |tensor: &Tensor| tensor.to_dtype(DType::BF16).unwrap().to_dtype(DType::F32).unwrap();
        let (expected, slopes) = adapted(case, DType::F32, Dropped::Nan, rounded).unwrap();
        assert_eq!(loss.value().unwrap(), expected.value().unwrap(), "{}", case.title());
        assert_eq!(gradients, slopes, "{}", case.title());
    }
}

#[test]
fn the_surrogate_has_the_value_and_the_gradient() {
    let x = Var::new(&[1.5_f32, f32::NAN, -2.0], &Device::Cpu).unwrap();
    let slopes = Tensor::new(&[0.25_f32, 0.0, -3.0], &Device::Cpu).unwrap();
    let loss = surrogate(&x, &slopes, 0.1).unwrap();
    assert_eq!(loss.to_scalar::<f32>().unwrap(), 0.1);
    assert_eq!(flat(loss.backward().unwrap().get(&x), &x), [0.25, 0.0, -3.0]);
}
