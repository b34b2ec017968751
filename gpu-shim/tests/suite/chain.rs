//! From logits to the gradient of the logits in one submission, against the core in `f64`.

use tokenwise::{
    advantage::{gae, whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    divergence::{kl_estimate, KlConfig, KlEstimator, KlInput},
    loss::{ppo_clip, Aggregate, AggregateMode, PolicyLoss, PolicyLossInput, PpoConfig},
    policy::{log_probs_and_entropy, logits_gradient, LogProbInput, LogProbOutput, LogitsGradientInput, PolicyConfig},
    reward::{place_scores, shape_rewards, ShapeConfig, ShapeInput},
    Batch, Layout, Mask,
};
use tokenwise_gpu::{
    Column, Done, GaeColumns, Gpu, GpuBatch, GpuError, Input, KlColumns, LogitColumns, PolicyLossColumns, Report,
    ShapeColumns,
};

use crate::{
    adapter::{gpu, small_gpu, trainers_gpu},
    random::Random,
};

struct Data {
    vocab: usize,
    keep: Vec<bool>,
    logits: Vec<f32>,
    tokens: Vec<u32>,
    old: Vec<f32>,
    reference: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
    bootstrap: Vec<f32>,
}

const POLICY: PolicyConfig = PolicyConfig { temperature: 0.7 };
const KL: KlConfig = KlConfig {
    estimator: KlEstimator::K3,
    gradient: tokenwise::divergence::KlGradient::Own,
    bounds: tokenwise::divergence::KlBounds::Unbounded,
};
const SHAPE: ShapeConfig = ShapeConfig { beta: 0.05 };

fn gae_config() -> GaeConfig {
    GaeConfig { gamma: 0.99, lambda: 0.95, ..Default::default() }
}

fn ppo_config() -> PpoConfig<'static> {
    let aggregate = Aggregate { mode: AggregateMode::SequenceMeanTokenMean, ..Default::default() };
    PpoConfig { aggregate, ..Default::default() }
}

impl Data {
    fn random(random: &mut Random, sequences: usize, tokens: usize, vocab: usize) -> Self {
        let log_probs = |random: &mut Random| (0..tokens).map(|_| -1.0 - random.normal().abs()).collect::<Vec<_>>();
        Self {
            vocab,
            keep: random.mask(tokens, 75),
            logits: random.normals(tokens * vocab, 2.0),
            tokens: (0..tokens).map(|_| random.below(vocab) as u32).collect(),
            old: log_probs(random),
            reference: log_probs(random),
            values: random.normals(tokens, 1.0),
            scores: random.normals(sequences, 1.0),
            bootstrap: random.normals(sequences, 1.0),
        }
    }

    /// NaN and infinities wherever the mask is false.
    fn poison(&mut self) {
        for (slot, &keep) in self.keep.iter().enumerate() {
            if !keep {
                self.logits[slot * self.vocab..(slot + 1) * self.vocab].fill(f32::NAN);
                self.tokens[slot] = u32::MAX;
                self.old[slot] = f32::INFINITY;
                self.reference[slot] = f32::NAN;
                self.values[slot] = f32::NEG_INFINITY;
            }
        }
    }

    /// Loss and gradient of the logits by the core.
    fn on_core(&self, batch: &Batch<'_>) -> (PolicyLoss, Vec<f64>) {
        let wide = |slice: &[f32]| slice.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let zeros = || vec![0.0; batch.tokens()];
        let (logits, vocab, tokens) = (wide(&self.logits), self.vocab, &self.tokens[..]);
        let (mut log_probs, mut entropy) = (zeros(), zeros());
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        log_probs_and_entropy(batch, LogProbInput { logits: &logits, vocab, tokens }, &POLICY, output).unwrap();
        let (mut kl, mut scores, mut rewards) = (zeros(), zeros(), zeros());
        let input = KlInput { log_probs: &log_probs, ref_log_probs: &wide(&self.reference) };
        kl_estimate(batch, input, &KL, &mut kl).unwrap();
        place_scores(batch, &wide(&self.scores), &mut scores).unwrap();
        shape_rewards(batch, ShapeInput { scores: &scores, kl: &kl }, &SHAPE, &mut rewards).unwrap();
        let (mut advantages, mut returns, mut white, mut grad) = (zeros(), zeros(), zeros(), zeros());
        let input = GaeInput { rewards: &rewards, values: &wide(&self.values), bootstrap: &wide(&self.bootstrap) };
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        gae(batch, input, &gae_config(), output).unwrap();
        whiten(batch, &advantages, &WhitenConfig::default(), &mut white).unwrap();
        let input = PolicyLossInput::new(&log_probs, &[], &[]);
        let (old, white) = (wide(&self.old), white);
        let input = PolicyLossInput { old_log_probs: &old, advantages: &white, ..input };
        let loss = ppo_clip(batch, input, &ppo_config(), &mut grad).unwrap();
        let mut grad_logits = vec![9.0; logits.len()];
        let input =
            LogitsGradientInput { logits: &logits, vocab, tokens, grad_log_probs: &grad, grad_entropy: &zeros() };
        logits_gradient(batch, input, &POLICY, &mut grad_logits).unwrap();
        (loss, grad_logits)
    }

    /// The same in one submission. Logits, ids and whatever else is on the device already may be given as columns.
    fn on_gpu(
        &self,
        gpu: &Gpu,
        batch: &GpuBatch<'_>,
        logits: Option<(&Column, &Column)>,
    ) -> Result<(PolicyLoss, Vec<f32>, Report), GpuError> {
        let mut recording = gpu.record();
        let (logits, tokens) = match logits {
            Some((logits, tokens)) => (Input::from(logits), Input::from(tokens)),
            None => (Input::from(&self.logits), Input::from(&self.tokens)),
        };
        let policy = recording.log_probs(batch, &LogitColumns { logits, vocab: self.vocab, tokens }, &POLICY)?;
        let log_probs = Input::from(&policy.log_probs);
        let kl = KlColumns { log_probs: log_probs.clone(), ref_log_probs: Input::from(&self.reference) };
        let kl = recording.kl_estimate(batch, &kl, &KL)?;
        let scores = recording.place_scores(batch, &Input::from(&self.scores))?;
        let rewards = recording.shape_rewards(batch, &ShapeColumns { scores: scores.into(), kl: kl.into() }, &SHAPE)?;
        let input = GaeColumns {
            rewards: rewards.into(),
            values: Input::from(&self.values),
            bootstrap: Input::from(&self.bootstrap),
        };
        let (advantages, _) = recording.gae(batch, &input, &gae_config())?;
        let white = recording.whiten(batch, &advantages.into(), &WhitenConfig::default())?;
        let input = PolicyLossColumns {
            log_probs,
            old_log_probs: Input::from(&self.old),
            advantages: white.into(),
            weights: None,
        };
        let loss = recording.ppo_clip(batch, &input, &ppo_config())?;
        let grad = recording.logits_gradient(batch, &policy, &Input::from(&loss.grad), None)?;
        let grad = recording.download(&grad);
        let done: Done = pollster::block_on(recording.submit())?;
        Ok((done.get(&loss.loss), done.floats(grad).to_vec(), done.report().clone()))
    }

    fn check(&self, case: &str, gpu: &Gpu, batch: &Batch<'_>) {
        let (exact, exact_grad) = self.on_core(batch);
        let (loss, grad, report) = self.on_gpu(gpu, &GpuBatch::new(*batch), None).unwrap();
        assert!(!report.special, "{case}");
        for (got, exact) in [
            (loss.loss, exact.loss),
            (loss.clip_fraction, exact.clip_fraction),
            (loss.clip_fraction_lower, exact.clip_fraction_lower),
            (loss.kl, exact.kl),
        ] {
            assert!((got - exact).abs() <= 1e-6 + 4e-6 * exact.abs(), "{case}: got {got}, exact {exact}");
        }
        let largest = exact_grad.iter().fold(0.0_f64, |largest, grad| largest.max(grad.abs()));
        for (index, (&got, &exact)) in grad.iter().zip(&exact_grad).enumerate() {
            let error = (f64::from(got) - exact).abs();
            assert!(error <= 2e-5 * largest, "{case}: grad[{index}] got {got}, exact {exact}, largest {largest}");
            assert!(batch.mask().as_slice()[index / self.vocab] || got.to_bits() == 0, "{case}: dropped");
        }
    }
}

const OFFSETS: [u32; 6] = [0, 1, 1, 300, 2400, 2600];

#[test]
fn the_chain_agrees_with_the_core() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(50);
    for vocab in [1, 2, 37, 1000] {
        let mut data = Data::random(&mut random, 5, 2600, vocab);
        data.poison();
        let mask = data.keep.clone();
        let packed = Batch::new(Layout::packed(&OFFSETS).unwrap(), Mask::new(&mask)).unwrap();
        data.check(&format!("packed, vocabulary {vocab}"), gpu, &packed);
        let padded = Batch::new(Layout::padded(5, 520).unwrap(), Mask::new(&mask)).unwrap();
        data.check(&format!("padded, vocabulary {vocab}"), gpu, &padded);
    }
}

#[test]
fn the_chain_in_pieces_has_the_same_bits() {
    let (Some(gpu), Some(small)) = (gpu(), small_gpu(1 << 16)) else { return };
    let mut random = Random::new(51);
    let mut data = Data::random(&mut random, 5, 30_000, 5);
    data.poison();
    let mask = data.keep.clone();
    let batch = Batch::new(Layout::padded(5, 6000).unwrap(), Mask::new(&mask)).unwrap();
    let (loss, grad, whole) = data.on_gpu(gpu, &GpuBatch::new(batch), None).unwrap();
    let (pieces_loss, pieces_grad, pieces) = data.on_gpu(&small, &GpuBatch::new(batch), None).unwrap();
    assert_eq!(loss, pieces_loss);
    assert_eq!(grad, pieces_grad);
    assert!(pieces.dispatches > whole.dispatches);
}

#[test]
fn only_what_is_asked_for_moves() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(52);
    let (tokens, vocab, sequences) = (2600_u64, 64_u64, 5_u64);
    let data = Data::random(&mut random, 5, 2600, 64);
    let batch = Batch::new(Layout::packed(&OFFSETS).unwrap(), Mask::new(&data.keep)).unwrap();
    let resident = GpuBatch::new(batch);
    let (_, first_grad, first) = data.on_gpu(gpu, &resident, None).unwrap();
    // one slot word, one id, three columns; scores, bootstrap and aggregation weights; parameters
    let columns = 4 * (tokens * 4 + 3 * sequences);
    let parameters = 256 * u64::from(first.dispatches);
    assert_eq!(first.bytes_up, 4 * tokens * (vocab + 1) + columns + parameters);
    let records = first.bytes_down - 4 * tokens * vocab;
    assert!(records < 256, "{records} bytes beside the gradient");
    assert_eq!(first.dispatches, 15);
    // logits and ids that are on the device already, and a batch whose slots are
    let mut recording = gpu.record();
    let logits = recording.upload(&data.logits).unwrap();
    let ids = recording.upload_words(&data.tokens).unwrap();
    pollster::block_on(recording.submit()).unwrap();
    let (_, grad, second) = data.on_gpu(gpu, &resident, Some((&logits, &ids))).unwrap();
    assert_eq!(second.bytes_up, columns - 4 * tokens + parameters);
    assert_eq!(grad, first_grad);
    assert!(gpu.pooled_bytes() > 0);
}

/// Where the device has timestamps, a report has the time of its kernels; a trainer's device may have none.
#[test]
fn reports_have_the_time_on_the_device() {
    let (Some(gpu), Some(trainers)) = (gpu(), trainers_gpu()) else { return };
    let stamped = gpu.device().features().contains(wgpu::Features::TIMESTAMP_QUERY);
    // the adapter that the tests are meant for
    assert!(stamped || !gpu.info().name.starts_with("llvmpipe"), "{:?}", gpu.info());
    let data = Data::random(&mut Random::new(53), 5, 2600, 500);
    let batch = Batch::new(Layout::packed(&OFFSETS).unwrap(), Mask::new(&data.keep)).unwrap();
    let (_, grad, report) = data.on_gpu(gpu, &GpuBatch::new(batch), None).unwrap();
    assert_eq!(report.device.is_some(), stamped);
    if let (Some(device), Some(host)) = (report.device, report.host) {
        assert!(!device.is_zero() && device <= host, "{report:?}");
    }
    let (_, trainers_grad, report) = data.on_gpu(&trainers, &GpuBatch::new(batch), None).unwrap();
    assert_eq!((report.device, trainers_grad), (None, grad));
    assert!(report.host.is_some());
    // nothing ran
    let report = pollster::block_on(gpu.record().submit()).unwrap().report().clone();
    assert_eq!((report.device, report.dispatches, report.bytes_up, report.bytes_down), (None, 0, 0, 0));
}

/// A trainer's own buffer is read where it is.
#[test]
fn foreign_buffers_are_columns() {
    let Some(gpu) = gpu() else { return };
    use tokenwise_gpu::wgpu::{BufferDescriptor, BufferUsages};
    let keep = [true, false, true, true];
    let batch = GpuBatch::new(Batch::new(Layout::padded(1, 4).unwrap(), Mask::new(&keep)).unwrap());
    let buffer = gpu.device().create_buffer(&BufferDescriptor {
        label: None,
        size: 512,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let bytes: Vec<u8> = [1.0_f32, f32::NAN, 2.0, 6.0].into_iter().flat_map(f32::to_le_bytes).collect();
    let aligned = u64::from(gpu.limits().min_storage_buffer_offset_alignment);
    // any offset that the device can bind
    for offset in [256, aligned] {
        gpu.queue().write_buffer(&buffer, offset, &bytes);
        let column = Column::from_buffer(buffer.clone(), offset / 4, 4).unwrap();
        let mut recording = gpu.record();
        let moments = recording.moments(&batch, &column.into()).unwrap();
        let done = pollster::block_on(recording.submit()).unwrap();
        let moments = done.get(&moments);
        assert_eq!((moments.count, moments.mean, moments.m2), (3, 3.0, 14.0));
    }
    let refused = Column::from_buffer(buffer.clone(), 1, 4).map(|column| gpu.record().moments(&batch, &column.into()));
    assert!(aligned == 4 || refused.unwrap().is_err_and(|error| error.code() == "unsupported"));
    assert!(Column::from_buffer(buffer, 64, 65).is_err());
}
