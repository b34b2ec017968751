//! Formulas of the other stages: advantages, rollout corrections, metrics and controllers by one call each.

use candle_core::{DType, Device, Tensor};
use serde_json::json;
use tokenwise::{
    advantage::{GaeConfig, GroupConfig, WhitenConfig},
    control::{DualGame, DualGameRules, DualGameStep},
    Batch, Groups, Layout, Mask,
};
use tokenwise_candle::{
    broadcast, call,
    control::{dual_game_step, DualGameInput, Weight},
    gae, group_relative, whiten, GaeInput, Inputs,
};

const NAN: f64 = f64::NAN;

fn tensor(rows: &[[f64; 3]; 2]) -> Tensor {
    Tensor::new(rows, &Device::Cpu).unwrap()
}

fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(2, 3).unwrap(), Mask::new(&[true, true, true, true, true, false])).unwrap()
}

#[test]
fn advantages_keep_the_shape_of_their_inputs() {
    let (rewards, values) = (tensor(&[[0.0, 0.0, 1.0], [0.0, 2.0, NAN]]), tensor(&[[0.5; 3], [0.25, 0.5, NAN]]));
    let bootstrap = Tensor::zeros(2, DType::F64, &Device::Cpu).unwrap();
    let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let result = gae(&batch(), input, &GaeConfig { lambda: 0.5, ..Default::default() }).unwrap();
    let advantages = result.advantages.to_vec2::<f64>().unwrap();
    assert_eq!(advantages, [[0.125, 0.25, 0.5], [1.0, 1.5, 0.0]]);
    assert_eq!(result.returns.to_vec2::<f64>().unwrap()[1], [1.25, 2.0, 0.0]);
    let white = whiten(&batch(), &result.advantages, &WhitenConfig::default()).unwrap();
    assert_eq!(white.dims(), [2, 3]);

    let scores = Tensor::new(&[1.0, 3.0], &Device::Cpu).unwrap();
    let relative = group_relative(&Groups::from_ids(&[0, 0]).unwrap(), &scores, &GroupConfig::default()).unwrap();
    let spread = broadcast(&batch(), &relative).unwrap();
    assert_eq!(spread.dims(), [6]);
    let spread = spread.to_vec1::<f64>().unwrap();
    assert!(spread[0] == spread[2] && spread[0] == -spread[3] && spread[5] == 0.0);
}

#[test]
fn other_kinds_of_columns_arrive_and_return() {
    // flags out, half precision in
    let old = tensor(&[[-1.0, -1.0, -1.0], [-1.0, -1.0, NAN]]).to_dtype(DType::BF16).unwrap();
    let sampler = tensor(&[[-1.0, -3.0, -1.0], [-1.0, -1.0, NAN]]).to_dtype(DType::BF16).unwrap();
    let inputs = Inputs::new().with("old_log_probs", &old).with("rollout_log_probs", &sampler);
    let criteria = json!({ "criteria": [{ "option": "token-k2", "upper": 0.5 }] });
    let kept = call("rollout_rejection", &batch(), &inputs, &criteria).unwrap();
    assert_eq!(kept.tensor("keep").unwrap().to_vec2::<u8>().unwrap(), [[1, 0, 1], [1, 1, 0]]);
    let weights = call("rollout_weights", &batch(), &inputs, &json!({ "bound": { "kind": "truncate", "upper": 2.0 } }));
    assert_eq!(weights.unwrap().tensor("weights").unwrap().to_vec2::<f32>().unwrap()[0], [1.0, 2.0, 1.0]);

    // ids in
    let tokens = Tensor::new(&[[5_i64, 2, 9], [7, 2, 0]], &Device::Cpu).unwrap();
    let inputs = Inputs::new().with("tokens", &tokens).with("eos", &[2_u32][..]);
    let mask = call("response_mask_from_eos", &batch(), &inputs, &()).unwrap();
    let mask = mask.tensors().next().unwrap().1.to_vec2::<u8>().unwrap();
    assert_eq!(mask, [[1, 1, 0], [1, 1, 0]]);

    // counts out
    let groups = Groups::from_ids(&[0, 1]).unwrap();
    let counts = call("group_tokens", (&batch(), &groups), &Inputs::new(), &()).unwrap();
    assert_eq!(counts.tensor("tokens").unwrap().to_vec1::<i64>().unwrap(), [3, 2]);

    // no batch, f64 out of f32
    let scores = Tensor::new(&[0.5_f32, 1.5], &Device::Cpu).unwrap();
    let weights = call("pf_ppo_weights", (), &Inputs::new().with("scores", &scores), &()).unwrap();
    assert_eq!(weights.tensor("weights").unwrap().dtype(), DType::F64);

    // the rows that predicted the response
    let raw = Tensor::new(&[[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]], &Device::Cpu).unwrap();
    let inputs = Inputs::new().with("raw", &raw).with("width", 1_usize);
    let inputs = inputs.with("raw_layout.batch", 2_usize).with("raw_layout.len", 4_usize);
    let shifted = call("shift", &batch(), &inputs, &()).unwrap();
    assert_eq!(shifted.tensor("out").unwrap().to_vec1::<f64>().unwrap(), [0.0, 1.0, 2.0, 4.0, 5.0, 6.0]);
}

#[test]
fn metrics_are_numbers() {
    let values = tensor(&[[1.0, 2.0, 3.0], [4.0, 5.0, NAN]]);
    let inputs = Inputs::new().with("values", &values).with("returns", &values);
    let explained = call("explained_variance", &batch(), &inputs, &json!({ "epsilon": 0.0 })).unwrap();
    assert_eq!(explained.numbers().map(|(_, number)| number).collect::<Vec<_>>()[0], 1.0);
    let inputs = Inputs::new().with("old_log_probs", &values).with("advantages", &values).with("rewards", &values);
    // the sums of the two sequences are 6 and 9
    let analysis = call("analysis", &batch(), &inputs, &()).unwrap();
    assert_eq!(analysis.number("analysis/reward_sum_mean").unwrap(), 7.5);
    assert!(analysis.numbers().any(|(key, _)| key == "analysis/covariance_mean"));
}

#[test]
fn the_dual_game_measures_tensors() {
    let old = tensor(&[[-1.0, -0.5, -2.0], [-0.25, -1.5, NAN]]);
    let reference = tensor(&[[-1.5, -0.5, -1.0], [-0.5, -1.0, NAN]]);
    let (advantages, rewards) =
        (tensor(&[[1.0, -1.0, 0.5], [2.0, -0.5, NAN]]), tensor(&[[0.0, 0.0, 1.0], [0.5, 0.0, NAN]]));
    let input = DualGameInput {
        old_log_probs: &old,
        ref_log_probs: Some(&reference),
        advantages: &advantages,
        rewards: &rewards,
        weight: Weight::KlGated,
        last_update: None,
    };
    let mut game = DualGame::new(&DualGameRules::default()).unwrap();
    let report = dual_game_step(&mut game, &batch(), input).unwrap();

    let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f64>().unwrap();
    let [old, reference, advantages, rewards] = [&old, &reference, &advantages, &rewards].map(flat);
    let mut step = DualGameStep::new(&old, &advantages, &rewards);
    step.ref_log_probs = Some(&reference);
    step.weight = tokenwise::weight::TokenWeight::KlGated;
    let mut expected = DualGame::new(&DualGameRules::default()).unwrap();
    assert_eq!(report.beta, expected.step(&batch(), step, None).unwrap().beta);
    assert_eq!(game, expected);
    let wrong = input.advantages.to_dtype(DType::F32).unwrap();
    assert!(dual_game_step(&mut game, &batch(), DualGameInput { advantages: &wrong, ..input }).is_err());
}
