//! Bad input gives an error that names it, and never a panic.

use burn::tensor::{DType, Int, Tensor};
use serde_json::json;
use tokenwise::{policy::PolicyConfig, Batch, Layout, Mask};
use tokenwise_burn::{call, log_probs_and_entropy, loss, Error, Inputs, LogProbInput};
use tokenwise_catalogue::entries;

use crate::tape::device;

fn zeros(len: usize) -> Tensor<2> {
    Tensor::zeros([1, len], &device())
}

fn ppo<'a>(log_probs: &Tensor<2>, other: &Tensor<2>) -> Inputs<'a> {
    Inputs::new().with("log_probs", log_probs).with("old_log_probs", other).with("advantages", other)
}

fn refused(name: &str, inputs: &Inputs<'_>, config: &serde_json::Value) -> Error {
    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, true])).unwrap();
    loss(name, &batch, inputs, config).unwrap_err()
}

#[test]
fn errors_name_what_is_wrong() {
    let (two, three, wide) = (zeros(2), zeros(3), zeros(2).cast(DType::F64));
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
    assert_eq!(error.to_string(), "old_log_probs: expected f32, f16 or bf16, got F64");
    let error = refused("ppo_clip", &Inputs::new().with("log_probs", &two), &empty);
    assert_eq!(error.to_string(), "old_log_probs: expected numbers, got nothing");
    let error = refused("ppo_clip", &ppo(&two, &two).with("weight", &two), &empty);
    assert_eq!(error.to_string(), "weight: not an input of ppo_clip");
    let error = refused("ppo_clip", &ppo(&two, &two).with("weights", 1_usize), &empty);
    assert_eq!(error.to_string(), "weights: expected numbers, got a size");
    assert_eq!(refused("ppo", &Inputs::new(), &empty).to_string(), "ppo: no formula has this name");
    assert_eq!(refused("gae", &Inputs::new(), &empty).to_string(), "gae: not a loss");
    assert_eq!(refused("gvpo", &ppo(&two, &two), &empty).to_string(), "groups: expected one, got nothing");

    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, true])).unwrap();
    let untracked = loss("ppo_clip", &batch, &ppo(&two, &two), &()).unwrap();
    assert!(matches!(untracked.backward(), Err(Error::NotTracked)));
    let white = call("whiten", &batch, &Inputs::new().with("values", &two), &()).unwrap();
    assert!(matches!(white.tensor::<3>("out"), Err(Error::Shape { .. })));
    assert!(matches!(white.tensor::<2>("values"), Err(Error::Output { .. })));
    assert!(matches!(white.bools::<2>("out"), Err(Error::Output { .. })));
    assert!(white.number("mean").is_err());
    use std::error::Error as _;
    let error = refused("ppo_clip", &ppo(&three, &two), &empty);
    assert!(error.source().is_some_and(|source| source.is::<tokenwise::Error>()));
}

#[test]
fn logits_and_tokens_are_checked() {
    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, false])).unwrap();
    let run = |entries: usize, ids: [i64; 2], temperature| {
        let logits = Tensor::<3>::zeros([1, 2, entries], &device());
        let tokens = Tensor::<2, Int>::from_data([ids], &device());
        log_probs_and_entropy(&batch, LogProbInput { logits, tokens }, &PolicyConfig { temperature })
    };
    // what a dropped slot holds does not matter
    assert!(run(3, [2, -100], 1.0).is_ok());
    let error = run(3, [3, 0], 1.0).unwrap_err();
    assert!(matches!(error, Error::Core(tokenwise::Error::TokenId { index: 0, id: 3, vocab: 3 })), "{error}");
    assert_eq!(run(3, [-1, 0], 1.0).unwrap_err().to_string(), "tokens[0]: expected 0 or more, got -1");
    assert!(matches!(run(3, [0, 0], 0.0), Err(Error::Core(tokenwise::Error::Config { .. }))));
    let input = LogProbInput { logits: zeros(3), tokens: Tensor::<1, Int>::zeros([2], &device()) };
    assert!(matches!(log_probs_and_entropy(&batch, input, &PolicyConfig::default()), Err(Error::Core(_))));
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
