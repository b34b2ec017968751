//! Formulas of the other stages: advantages, rollout corrections, metrics and controllers by one call each.

use burn::tensor::{DType, Int, Tensor};
use serde_json::json;
use tokenwise::{
    advantage::{GaeConfig, GroupConfig, WhitenConfig},
    control::{DualGame, DualGameRules, DualGameStep},
    Batch, Groups, Layout, Mask,
};
use tokenwise_burn::{
    broadcast, call,
    control::{dual_game_step, DualGameInput, Weight},
    gae, group_relative, kept, whiten, GaeInput, Inputs,
};

use crate::tape::{device, host};

const NAN: f32 = f32::NAN;

fn tensor(rows: [[f32; 3]; 2]) -> Tensor<2> {
    Tensor::from_floats(rows, &device())
}

fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(2, 3).unwrap(), Mask::new(&[true, true, true, true, true, false])).unwrap()
}

#[test]
fn advantages_keep_the_shape_of_their_inputs() {
    let (rewards, values) = (tensor([[0.0, 0.0, 1.0], [0.0, 2.0, NAN]]), tensor([[0.5; 3], [0.25, 0.5, NAN]]));
    let bootstrap = Tensor::<1>::zeros([2], &device());
    let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    let result = gae(&batch(), input, &GaeConfig { lambda: 0.5, ..Default::default() }).unwrap();
    assert_eq!(host(&result.advantages), [0.125, 0.25, 0.5, 1.0, 1.5, 0.0]);
    assert_eq!(host(&result.returns)[3..], [1.25, 2.0, 0.0]);
    assert_eq!(whiten(&batch(), &result.advantages, &WhitenConfig::default()).unwrap().dims(), [2, 3]);

    let scores = Tensor::<1>::from_floats([1.0, 3.0], &device());
    let relative = group_relative(&Groups::from_ids(&[0, 0]).unwrap(), &scores, &GroupConfig::default()).unwrap();
    let spread = host(&broadcast(&batch(), &relative).unwrap());
    assert!(spread[0] == spread[2] && spread[0] == -spread[3] && spread[5] == 0.0);
}

#[test]
fn other_kinds_of_columns_arrive_and_return() {
    let old = tensor([[-1.0, -1.0, -1.0], [-1.0, -1.0, NAN]]);
    let sampler = tensor([[-1.0, -3.0, -1.0], [-1.0, -1.0, NAN]]);
    let inputs = Inputs::new().with("old_log_probs", &old).with("rollout_log_probs", &sampler);
    let criteria = json!({ "criteria": [{ "option": "token-k2", "upper": 0.5 }] });
    let results = call("rollout_rejection", &batch(), &inputs, &criteria).unwrap();
    assert_eq!(kept(&results.bools::<2>("keep").unwrap()).unwrap(), [true, false, true, true, true, false]);

    let tokens = Tensor::<2, Int>::from_data([[5, 2, 9], [7, 2, 0]], &device());
    let inputs = Inputs::new().with("tokens", &tokens).with("eos", &[2_u32][..]);
    assert!(call("response_mask_from_eos", &batch(), &inputs, &()).is_ok());

    let groups = Groups::from_ids(&[0, 1]).unwrap();
    let counts = call("group_tokens", (&batch(), &groups), &Inputs::new(), &()).unwrap();
    assert_eq!(counts.ints::<1>("tokens").unwrap().try_to_vec_as::<i64>().unwrap(), [3, 2]);

    let scores = Tensor::<1>::from_floats([0.5, 1.5], &device());
    let weights = call("pf_ppo_weights", (), &Inputs::new().with("scores", &scores), &()).unwrap();
    assert_eq!(weights.tensor::<1>("weights").unwrap().dtype(), DType::F64);
}

#[test]
fn metrics_are_numbers() {
    let values = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, NAN]]);
    let inputs = Inputs::new().with("old_log_probs", &values).with("advantages", &values).with("rewards", &values);
    // the sums of the two sequences are 6 and 9
    let analysis = call("analysis", &batch(), &inputs, &()).unwrap();
    assert_eq!(analysis.number("analysis/reward_sum_mean").unwrap(), 7.5);
    assert!(analysis.numbers().any(|(key, _)| key == "analysis/covariance_mean"));
}

#[test]
fn the_dual_game_measures_tensors() {
    let old = tensor([[-1.0, -0.5, -2.0], [-0.25, -1.5, NAN]]);
    let reference = tensor([[-1.5, -0.5, -1.0], [-0.5, -1.0, NAN]]);
    let (advantages, rewards) =
        (tensor([[1.0, -1.0, 0.5], [2.0, -0.5, NAN]]), tensor([[0.0, 0.0, 1.0], [0.5, 0.0, NAN]]));
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

    let flat = |tensor: &Tensor<2>| tensor.try_to_vec_as::<f32>().unwrap();
    let [old, reference, gains, paid] = [&old, &reference, &advantages, &rewards].map(flat);
    let mut step = DualGameStep::new(&old, &gains, &paid);
    step.ref_log_probs = Some(&reference);
    step.weight = tokenwise::weight::TokenWeight::KlGated;
    let mut expected = DualGame::new(&DualGameRules::default()).unwrap();
    assert_eq!(report.beta, expected.step(&batch(), step, None).unwrap().beta);
    assert_eq!(game, expected);
    let wrong = advantages.clone().cast(DType::F64);
    assert!(dual_game_step(&mut game, &batch(), DualGameInput { advantages: &wrong, ..input }).is_err());
}
