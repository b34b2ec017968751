//! Every loss and its gradient against burn's autodiff of the plain formula.

use burn::tensor::{DType, Tensor};
use tokenwise_burn::surrogate;
use tokenwise_catalogue::entries;

use crate::{
    plain::{cases, tolerance_in_f32, Case},
    tape::{adapted, assert_near, autodiff, device, host, Dropped, Tape},
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
        let (loss, got) = adapted(&case, dtype, Dropped::Nan).unwrap_or_else(|e| panic!("{title}: {e}"));
        assert_near(&title, &[value], &[loss.value().unwrap()], 10.0 * tolerance);
        assert_near(&title, &[loss.value().unwrap()], &host(&loss.tensor), tolerance);
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
        let (_, got) = adapted(&case, DType::F32, Dropped::Nan).unwrap();
        for ((expected, got), leaf) in expected.iter().zip(&got).zip(case.leaves()) {
            assert_near(&format!("{}: ∂/∂{}", case.title(), leaf.name), expected, got, 1e-6);
        }
    }
}

#[test]
fn dropped_slots_change_nothing() {
    for case in cases() {
        let [clean, poisoned] = [Dropped::Numbers, Dropped::Nan]
            .map(|dropped| adapted(&case, DType::F32, dropped).unwrap_or_else(|e| panic!("{}: {e}", case.title())));
        assert_eq!(clean.1, poisoned.1, "{}", case.title());
        assert_eq!(clean.0.value().unwrap(), poisoned.0.value().unwrap(), "{}", case.title());
    }
}

#[test]
fn losses_can_be_scaled_and_added() {
    let x = Tensor::<2>::from_floats([[-1.0, -2.0, -0.5, -0.25]], &device()).require_grad();
    let batch = tokenwise::Batch::new(tokenwise::Layout::padded(1, 4).unwrap(), tokenwise::Mask::new(&[true; 4]));
    let inputs = tokenwise_burn::Inputs::new().with("losses", &x);
    let loss = tokenwise_burn::loss("aggregate", &batch.unwrap(), &inputs, &()).unwrap();
    let total = loss.tensor * 3.0 + x.clone().sum();
    assert_eq!(host(&x.grad(&total.backward()).unwrap()), [1.75; 4]);
}

#[test]
fn the_surrogate_has_the_value_and_the_gradient() {
    let x = Tensor::<1>::from_floats([1.5, f32::NAN, -2.0], &device()).require_grad();
    let loss = surrogate(&x, Tensor::from_floats([0.25, 0.0, -3.0], &device()), 0.125).unwrap();
    assert_eq!(host(&loss), [0.125]);
    assert_eq!(host(&x.grad(&loss.backward()).unwrap()), [0.25, 0.0, -3.0]);
    assert!(surrogate(&x, Tensor::from_floats([0.25, 0.0], &device()), 0.0).is_err());
    assert!(surrogate(&x, Tensor::from_floats([0.25, 0.0, 1.0], &device()).cast(DType::F64), 0.0).is_err());
}
