//! GRPO with corrected rollouts in one submission: scores to group advantages, rollout weights, loss and metrics.

use tokenwise::{
    advantage::{broadcast, group_relative, GroupConfig},
    loss::{ppo_clip, PolicyLossInput, PpoConfig},
    metric::{analysis, AnalysisInput},
    rollout::{rollout_weights, RolloutConfig, RolloutInput},
    Batch, Groups, Layout, Mask, Moments,
};
use tokenwise_gpu::{tolerance::TOKEN, AnalysisColumns, GpuBatch, GpuGroups, Input, PolicyLossColumns, RolloutColumns};

use crate::{adapter::gpu, call::near, random::Random};

#[test]
fn group_advantages_and_rollout_weights_stay_on_the_device() {
    let Some(gpu) = gpu() else { return };
    let (rows, width) = (12, 700);
    let mut random = Random::new(60);
    let log_probs = |random: &mut Random| (0..rows * width).map(|_| -0.1 - random.normal().abs()).collect::<Vec<_>>();
    let (old, new) = (log_probs(&mut random), log_probs(&mut random));
    let rollout: Vec<f32> = old.iter().map(|x| x + 0.1 * random.normal()).collect();
    let rewards = random.normals(rows * width, 1.0);
    let scores = random.normals(rows, 1.0);
    let keep = random.mask(rows * width, 80);
    let ids: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
    let batch = Batch::new(Layout::padded(rows, width).unwrap(), Mask::new(&keep)).unwrap();
    let groups = Groups::from_ids(&ids).unwrap();
    let group_config = GroupConfig::default();

    let on_device = GpuBatch::new(batch);
    let mut recording = gpu.record();
    let scored = recording.group_relative(&GpuGroups::new(groups), &Input::Host(&scores), &group_config).unwrap();
    let advantages = Input::Device(recording.broadcast(&on_device, &scored.into()).unwrap());
    let old_column = Input::Device(recording.upload(&old).unwrap());
    let pair = RolloutColumns { old_log_probs: old_column.clone(), rollout_log_probs: Input::Host(&rollout) };
    let (weights, _) = recording.rollout_weights(&on_device, &pair, &RolloutConfig::default()).unwrap();
    let input = PolicyLossColumns {
        log_probs: Input::Host(&new),
        old_log_probs: old_column.clone(),
        advantages: advantages.clone(),
        weights: Some(weights.into()),
    };
    let loss = recording.ppo_clip(&on_device, &input, &PpoConfig::default()).unwrap();
    let input = AnalysisColumns { old_log_probs: old_column, advantages, rewards: Input::Host(&rewards) };
    let metrics = recording.analysis(&on_device, &input).unwrap();
    let grad = recording.download(&loss.grad);
    let done = pollster::block_on(recording.submit()).unwrap();

    // four columns and the slots go up once, one column comes down
    let column = (4 * rows * width) as u64;
    let (up, down) = (done.report().bytes_up, done.report().bytes_down);
    assert!(up < 5 * column + 16_000 && down < column + 2_000, "{up} up, {down} down, {column} a column");
    assert!(!done.report().special);

    let wide = |numbers: &[f32]| numbers.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let (old, new, rollout, rewards) = (wide(&old), wide(&new), wide(&rollout), wide(&rewards));
    let (mut scored, mut advantages) = (vec![0.0; rows], vec![0.0; rows * width]);
    group_relative(&groups, &wide(&scores), &group_config, &mut [Moments::default(); 3], &mut scored).unwrap();
    broadcast(&batch, &scored, &mut advantages).unwrap();
    let mut weights = vec![0.0; rows * width];
    let input = RolloutInput { old_log_probs: &old, rollout_log_probs: &rollout };
    rollout_weights(&batch, input, &RolloutConfig::default(), &mut weights).unwrap();
    let mut exact_grad = vec![0.0; rows * width];
    let input = PolicyLossInput { weights: Some(&weights), ..PolicyLossInput::new(&new, &old, &advantages) };
    let exact = ppo_clip(&batch, input, &PpoConfig::default(), &mut exact_grad).unwrap();
    let result = done.get(&loss.loss);
    for (name, got, exact) in [("loss", result.loss, exact.loss), ("kl", result.kl, exact.kl)] {
        near(name, TOKEN, 0.0, got, exact);
    }
    for (&got, &exact) in done.floats(grad).iter().zip(&exact_grad) {
        near("grad", TOKEN, 0.0, got.into(), exact);
    }
    let input = AnalysisInput { old_log_probs: &old, advantages: &advantages, rewards: &rewards };
    let exact = analysis(&batch, input).unwrap();
    for ((name, got), (_, exact)) in done.get(&metrics).entries().into_iter().zip(exact.entries()) {
        near(name, TOKEN, 0.0, got, exact);
    }
}
