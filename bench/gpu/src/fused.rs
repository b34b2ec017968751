//! The chain as a recording of tokenwise-gpu: one submission.

use tokenwise::{
    advantage::{GaeConfig, WhitenConfig},
    divergence::{KlConfig, KlEstimator},
    loss::PpoConfig,
    policy::PolicyConfig,
    reward::ShapeConfig,
};
use tokenwise_gpu::{
    Column, GaeColumns, Gpu, GpuBatch, GpuError, Input, KlColumns, LogitColumns, PolicyLossColumns, PolicyLossResult,
    Recording, Report, ShapeColumns,
};

use crate::data::{Answer, Data, BETA, CLIP, EPSILON, LAMBDA, LOG_RATIO_BOUND};

/// A batch on the device.
pub struct Fused<'a> {
    gpu: &'a Gpu,
    batch: GpuBatch<'a>,
    vocab: usize,
    logits: Column,
    ids: Column,
    log_probs: Column,
    old: Column,
    reference: Column,
    values: Column,
    scores: Column,
    bootstrap: Column,
}

impl<'a> Fused<'a> {
    pub fn new(gpu: &'a Gpu, data: &'a Data) -> Result<Self, GpuError> {
        let mut recording = gpu.record();
        let fused = Self {
            gpu,
            batch: GpuBatch::new(data.batch()?),
            vocab: data.vocab,
            logits: recording.upload(&data.logits)?,
            ids: recording.upload_words(&data.ids)?,
            log_probs: recording.upload(&data.log_probs)?,
            old: recording.upload(&data.old)?,
            reference: recording.upload(&data.reference)?,
            values: recording.upload(&data.values)?,
            scores: recording.upload(&data.scores)?,
            bootstrap: recording.upload(&vec![0.0; data.rows])?,
        };
        pollster::block_on(recording.submit())?;
        Ok(fused)
    }

    /// Reads back the loss only.
    pub fn run(&self) -> Result<Report, GpuError> {
        Ok(self.chain(false)?.1)
    }

    pub fn answer(&self) -> Result<Answer, GpuError> {
        Ok(self.chain(true)?.0)
    }

    /// The advantages of the rewards `reference`, nothing else.
    pub fn advantages(&self) -> Result<(), GpuError> {
        let mut recording = self.gpu.record();
        let input = GaeColumns {
            rewards: Input::from(&self.reference),
            values: Input::from(&self.values),
            bootstrap: Input::from(&self.bootstrap),
        };
        recording.gae(&self.batch, &input, &GaeConfig { gamma: 1.0, lambda: LAMBDA, ..Default::default() })?;
        pollster::block_on(recording.submit()).map(drop)
    }

    fn chain(&self, read: bool) -> Result<(Answer, Report), GpuError> {
        let mut recording = self.gpu.record();
        let (loss, grad) = if self.vocab == 0 {
            let loss = self.losses(&mut recording, &self.log_probs)?;
            (loss.loss, loss.grad)
        } else {
            let logits =
                LogitColumns { logits: Input::from(&self.logits), vocab: self.vocab, tokens: Input::from(&self.ids) };
            let policy = recording.log_probs(&self.batch, &logits, &PolicyConfig::default())?;
            let loss = self.losses(&mut recording, &policy.log_probs)?;
            let grad = recording.logits_gradient(&self.batch, &policy, &Input::from(&loss.grad), None)?;
            (loss.loss, grad)
        };
        let grad = read.then(|| recording.download(&grad));
        let done = pollster::block_on(recording.submit())?;
        let grad = grad.map_or_else(Vec::new, |grad| done.floats(grad).to_vec());
        Ok((Answer { loss: done.get(&loss).loss, grad }, done.report().clone()))
    }

    /// Records everything after the log-probabilities.
    fn losses(&self, recording: &mut Recording<'_>, log_probs: &Column) -> Result<PolicyLossResult, GpuError> {
        let batch = &self.batch;
        let kl = KlColumns { log_probs: log_probs.into(), ref_log_probs: Input::from(&self.reference) };
        let k3 = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
        let kl = recording.kl_estimate(batch, &kl, &k3)?;
        let scores = recording.place_scores(batch, &Input::from(&self.scores))?;
        let shape = ShapeColumns { scores: scores.into(), kl: kl.into() };
        let rewards = recording.shape_rewards(batch, &shape, &ShapeConfig { beta: BETA })?;
        let (advantages, _) = recording.gae(
            batch,
            &GaeColumns {
                rewards: rewards.into(),
                values: Input::from(&self.values),
                bootstrap: Input::from(&self.bootstrap),
            },
            &GaeConfig { gamma: 1.0, lambda: LAMBDA, ..Default::default() },
        )?;
        let config = WhitenConfig { epsilon: EPSILON, ..Default::default() };
        let white = recording.whiten(batch, &advantages.into(), &config)?;
        let input = PolicyLossColumns {
            log_probs: log_probs.into(),
            old_log_probs: Input::from(&self.old),
            advantages: white.into(),
            weights: None,
        };
        let config =
            PpoConfig { clip_low: CLIP, clip_high: CLIP, log_ratio_bound: Some(LOG_RATIO_BOUND), ..Default::default() };
        recording.ppo_clip(batch, &input, &config)
    }
}
