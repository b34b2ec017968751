//! Bad input gives an error that names it, and never a panic.

use candle_core::{DType, Device, Tensor};
use serde_json::json;
use tokenwise::{policy::PolicyConfig, Batch, Layout, Mask};
use tokenwise_candle::{call, kept, log_probs_and_entropy, loss, Error, Inputs, LogProbInput};
use tokenwise_catalogue::entries;

fn zeros(dtype: DType, len: usize) -> Tensor {
    Tensor::zeros((1, len), dtype, &Device::Cpu).unwrap()
}

fn ppo<'a>(log_probs: &'a Tensor, other: &'a Tensor) -> Inputs<'a> {
    Inputs::new().with("log_probs", log_probs).with("old_log_probs", other).with("advantages", other)
}

fn refused(name: &str, inputs: &Inputs<'_>, config: &serde_json::Value) -> Error {
    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, true])).unwrap();
    loss(name, &batch, inputs, config).unwrap_err()
}

#[test]
fn errors_name_what_is_wrong() {
    let (two, three, wide) = (zeros(DType::F32, 2), zeros(DType::F32, 3), zeros(DType::F64, 2));
    let whole = zeros(DType::U32, 2);
    let empty = json!({});

    let error = refused("ppo_clip", &ppo(&three, &two), &empty);
    assert!(
        matches!(error, Error::Core(tokenwise::Error::Length { what: "log_probs", expected: 2, got: 3 })),
        "{error}"
    );
    let error = refused("ppo_clip", &ppo(&two, &two), &json!({ "clip_low": -1.0 }));
    assert!(matches!(error, Error::Core(tokenwise::Error::Config { what: "clip_low", .. })), "{error}");
    let error = refused("ppo_clip", &ppo(&two, &two), &json!({ "clip_lo": 0.2 }));
    assert!(matches!(&error, Error::Config(error) if error.parameter == "clip_lo"), "{error}");
    let error = refused("ppo_clip", &ppo(&two, &wide), &empty);
    assert_eq!(error.to_string(), "old_log_probs: expected f32, got f64");
    let error = refused("ppo_clip", &ppo(&whole, &two), &empty);
    assert_eq!(error.to_string(), "log_probs: expected f32, f64, bf16 or f16, got u32");
    let error = refused("ppo_clip", &Inputs::new().with("log_probs", &two), &empty);
    assert_eq!(error.to_string(), "old_log_probs: expected numbers, got nothing");
    let error = refused("ppo_clip", &ppo(&two, &two).with("weight", &two), &empty);
    assert_eq!(error.to_string(), "weight: not an input of ppo_clip");
    let error = refused("ppo_clip", &ppo(&two, &two).with("weights", 1_usize), &empty);
    assert_eq!(error.to_string(), "weights: expected numbers, got a size");
    assert_eq!(refused("ppo", &Inputs::new(), &empty).to_string(), "ppo: no formula has this name");
    assert_eq!(refused("gae", &Inputs::new(), &empty).to_string(), "gae: not a loss");
    let error = refused("gvpo", &ppo(&two, &two), &empty);
    assert_eq!(error.to_string(), "groups: expected one, got nothing");
    let error = refused("ppo_clip", &ppo(&two, &two), &json!({ "aggregate": { "mode": "prompt-mean" } }));
    assert_eq!(error.to_string(), "groups: expected one, got nothing");

    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, true])).unwrap();
    let mean = call("mean", &batch, &Inputs::new().with("values", &two), &()).unwrap();
    assert_eq!(mean.number("median").unwrap_err().to_string(), "median: the formula returned nothing of this name");
    assert!(mean.tensor("mean").is_err());
    assert!(kept(&zeros(DType::BF16, 2)).is_err());
}

#[test]
fn logits_and_tokens_are_checked() {
    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, false])).unwrap();
    let logits = Tensor::zeros((1, 2, 3), DType::F32, &Device::Cpu).unwrap();
    let run = |logits: &Tensor, tokens: &Tensor, temperature| {
        log_probs_and_entropy(&batch, LogProbInput { logits, tokens }, &PolicyConfig { temperature })
    };
    let ids = |ids: &[i64]| Tensor::new(ids, &Device::Cpu).unwrap();
    // what a dropped slot holds does not matter
    assert!(run(&logits, &ids(&[2, -100]), 1.0).is_ok());
    let error = run(&logits, &ids(&[3, 0]), 1.0).unwrap_err();
    assert!(matches!(error, Error::Core(tokenwise::Error::TokenId { index: 0, id: 3, vocab: 3 })), "{error}");
    let error = run(&logits, &ids(&[-1, 0]), 1.0).unwrap_err();
    assert_eq!(error.to_string(), "tokens[0]: expected 0 or more, got -1");
    assert!(matches!(run(&logits, &ids(&[0, 0, 0]), 1.0), Err(Error::Core(tokenwise::Error::Length { .. }))));
    assert!(matches!(run(&logits, &ids(&[0, 0]), 0.0), Err(Error::Core(tokenwise::Error::Config { .. }))));
    assert!(matches!(run(&zeros(DType::F32, 4), &ids(&[0, 0]), 1.0), Err(Error::Core(_))));
    let scalar = Tensor::new(0_f32, &Device::Cpu).unwrap();
    assert!(matches!(run(&scalar, &ids(&[0, 0]), 1.0), Err(Error::Rank { input: "logits" })));
    assert!(matches!(run(&logits.to_dtype(DType::U32).unwrap(), &ids(&[0, 0]), 1.0), Err(Error::DType { .. })));
    assert!(matches!(
        run(&logits, &scalar.reshape(1).unwrap().broadcast_as(2).unwrap(), 1.0),
        Err(Error::DType { .. })
    ));
}

#[test]
fn errors_become_errors_of_candle_and_keep_their_source() {
    use std::error::Error as _;
    let two = zeros(DType::F32, 2);
    let error = refused("ppo_clip", &ppo(&zeros(DType::F32, 3), &two), &json!({}));
    assert!(error.source().is_some_and(|source| source.is::<tokenwise::Error>()));
    let text = error.to_string();
    assert!(candle_core::Error::from(error).to_string().contains(&text));
}

/// Every formula without any input: an error or a result, never a panic.
#[test]
fn calls_without_inputs_do_not_panic() {
    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, true])).unwrap();
    for entry in entries() {
        let _ = call(entry.name, &batch, &Inputs::new(), &());
        let _ = call(entry.name, (), &Inputs::new(), &());
        assert!(loss(entry.name, &batch, &Inputs::new(), &()).is_err(), "{}", entry.name);
    }
}
