//! What is refused, in which words, and what the host computes instead.

use burn::tensor::{DType, Tensor};
use tokenwise_burn::{
    wgpu::{OnDevice, Ran, Reason},
    Error, Inputs, LogProbInput,
};

use super::{batch, device, floats, host, ids, on_device};

#[test]
fn tensors_of_other_devices_and_types_are_refused() {
    let keep = [true, true];
    let elsewhere = Tensor::<1>::from_floats([1.0, 2.0], &crate::tape::device());
    let error = on_device().call("mean", &batch(1, &keep), &Inputs::new().with("values", &elsewhere), &()).unwrap_err();
    assert!(matches!(&error, Error::Device { input, .. } if input == "values"), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("values: expected a tensor on") && text.contains("Flex"), "{text}");

    let wide = crate::tape::tensor_on(&device(), &[1.0, 2.0], DType::F64);
    let error = on_device().call("mean", &batch(1, &keep), &Inputs::new().with("values", &wide), &()).unwrap_err();
    assert_eq!(error.to_string(), "values: expected f32, f16 or bf16, got F64");

    let twice = OnDevice::new().unwrap_err();
    assert!(matches!(twice, Error::Init(_)), "{twice}");
}

#[test]
fn errors_are_those_of_the_core() {
    let (keep, three) = ([true, true], floats(&[1.0, 2.0, 3.0]));
    let inputs = Inputs::new().with("values", &three);
    let on_host = tokenwise_burn::call("mean", &batch(1, &keep), &inputs, &()).unwrap_err();
    let got = on_device().call("mean", &batch(1, &keep), &inputs, &()).unwrap_err();
    assert_eq!(got.to_string(), on_host.to_string());
    assert!(on_device().call("no such formula", &batch(1, &keep), &inputs, &()).is_err());
    assert!(matches!(on_device().loss("mean", &batch(1, &keep), &inputs, &()), Err(Error::NotALoss { name: "mean" })));

    let logits = floats(&[0.0; 6]).reshape([1, 2, 3]);
    let input = LogProbInput { logits: logits.clone(), tokens: ids(&[2, 3]).reshape([1, 2]) };
    let error = on_device().log_probs_and_entropy(&batch(1, &keep), input, &Default::default()).unwrap_err();
    assert!(matches!(error, Error::Core(tokenwise::Error::TokenId { index: 1, id: 3, vocab: 3 })), "{error}");
    let input = LogProbInput { logits, tokens: ids(&[2, 1, 0]).reshape([1, 3]) };
    let error = on_device().log_probs_and_entropy(&batch(1, &keep), input, &Default::default()).unwrap_err();
    assert!(matches!(error, Error::Core(tokenwise::Error::Length { what: "tokens", expected: 2, got: 3 })), "{error}");
}

#[test]
fn the_host_computes_what_the_device_cannot() {
    let keep = [true, true];
    let values = floats(&[1.0, f32::INFINITY]);
    let results = on_device().call("mean", &batch(1, &keep), &Inputs::new().with("values", &values), &()).unwrap();
    assert_eq!(results.report().unwrap().ran, Ran::Core(Reason::Special));
    assert_eq!(results.number("mean").unwrap(), f64::INFINITY);

    let inputs = Inputs::new().with("values", &values);
    let quantile = on_device().call("quantile", &batch(1, &keep), &inputs, &());
    assert!(matches!(&quantile.unwrap().report().unwrap().ran, Ran::Core(Reason::NoKernel(_))));

    // the host has no report
    let inputs = Inputs::new().with("values", &values);
    assert!(tokenwise_burn::call("mean", &batch(1, &keep), &inputs, &()).unwrap().report().is_none());
    assert_eq!(host(&values)[0], 1.0);
}
