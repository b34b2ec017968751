//! The supervised warm-up, which gives the two-digit task its first right answers.

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use tokenwise::{Batch, Layout, Mask};
use tokenwise_candle::{log_probs_and_entropy, LogProbInput};

use super::stages;
use crate::{
    adam::{Adam, AdamConfig},
    model::{Network, Pass, Rows},
    random::{stream, Purpose},
    settings::Settings,
    task::Problem,
    timing::Clock,
};

/// Steps between two measurements of the accuracy.
const MEASURED_EVERY: u64 = 5;
/// Batches of samples in a measurement.
const CHECKED_BATCHES: usize = 4;
/// Right answers trained on in one step.
const BATCH: usize = 128;

/// How the warm-up went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Supervised steps.
    pub steps: u64,
    /// Share of samples that were right at its end.
    pub accuracy: f64,
}

/// Trains the policy on right answers until the wanted share of its samples is right.
///
/// It depends on the seed, the task and the sizes only: all groups of a seed start from the same weights.
///
/// # Errors
///
/// Those of candle and of the formulas.
pub fn warm_up(policy: &Network, settings: &Settings) -> anyhow::Result<WarmUp> {
    if !settings.task.warms_up() {
        return Ok(WarmUp { steps: 0, accuracy: accuracy(policy, settings, 0)? });
    }
    let mut adam = Adam::new(policy);
    let config = AdamConfig { learning_rate: settings.warm_up_lr, norm_limit: settings.norm_limit };
    let mut done = WarmUp::default();
    while done.steps < settings.warm_up_limit {
        let mut random = stream(settings.seed, Purpose::WarmUpProblems, done.steps);
        let problems: Vec<Problem> = (0..BATCH).map(|_| settings.task.problem(&mut random)).collect();
        supervised_step(policy, &mut adam, &config, &problems)?;
        done.steps += 1;
        if done.steps.is_multiple_of(MEASURED_EVERY) {
            done.accuracy = accuracy(policy, settings, done.steps)?;
            if done.accuracy >= settings.warm_up_accuracy {
                break;
            }
        }
    }
    Ok(done)
}

/// One step along the mean log-probability of right answers.
fn supervised_step(policy: &Network, adam: &mut Adam, config: &AdamConfig, problems: &[Problem]) -> anyhow::Result<()> {
    let prompts: Vec<Vec<u32>> = problems.iter().map(Problem::prompt).collect();
    let answers: Vec<Vec<u32>> = problems.iter().map(Problem::answer).collect();
    let rows = Rows::new(&prompts, answers.iter().map(Vec::as_slice));
    let predictors = Tensor::new(rows.predictors.as_slice(), &Device::Cpu)?;
    let logits = policy.forward(&rows, Pass::Differentiable)?.index_select(&predictors, 0)?;
    let tokens = Tensor::new(answers.concat(), &Device::Cpu)?;
    let keep = vec![true; tokens.elem_count()];
    let batch = Batch::new(Layout::padded(1, keep.len())?, Mask::new(&keep))?;
    let input = LogProbInput { logits: &logits, tokens: &tokens };
    let found = log_probs_and_entropy(&batch, input, &Default::default())?;
    let gradients = found.log_probs.mean_all()?.neg()?.backward()?;
    adam.update(policy, &gradients, config)?;
    Ok(())
}

/// The share of right answers among fresh samples, of several batches: a small sample that happens to be good would end
/// the warm-up too early.
fn accuracy(policy: &Network, settings: &Settings, step: u64) -> anyhow::Result<f64> {
    let mut random = stream(settings.seed, Purpose::WarmUpCheck, step);
    let (mut right, mut all) = (0, 0);
    for _ in 0..CHECKED_BATCHES {
        let problems = (0..settings.size.prompts).map(|_| settings.task.problem(&mut random)).collect();
        let rollout = stages::rollout(policy, settings, problems, &mut random, &mut Clock::default())?;
        let scores = stages::scores(&rollout);
        right += scores.iter().filter(|&&score| score > 0.0).count();
        all += scores.len();
    }
    Ok(right as f64 / all as f64)
}
