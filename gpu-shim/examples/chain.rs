//! One update from logits to the gradient of the logits, on the core and in one submission on the GPU.
//!
//! ```text
//! cargo run --release -p tokenwise-gpu --example chain -- 512 151936
//! cargo run --release -p tokenwise-gpu --example chain -- --growth
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::{
    env,
    error::Error,
    fs,
    process::ExitCode,
    time::{Duration, Instant},
};

use tokenwise::{
    advantage::{gae, whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    divergence::{kl_estimate, KlConfig, KlInput},
    loss::{ppo_clip, PolicyLoss, PolicyLossInput, PpoConfig},
    policy::{log_probs_and_entropy, logits_gradient, LogProbInput, LogProbOutput, LogitsGradientInput, PolicyConfig},
    reward::{place_scores, shape_rewards, ShapeConfig, ShapeInput},
    Batch, Layout, Mask,
};
use tokenwise_gpu::{
    half::bf16, wgpu::DeviceType, Column, GaeColumns, Gpu, GpuBatch, GpuError, GpuLogit, Input, KlColumns,
    LogitColumns, PolicyLossColumns, PolicyLossResult, Recording, Report, ShapeColumns,
};

const HELP: &str = "\
Usage: chain [TOKENS [VOCABULARY]]     one update on the core and on the GPU; default 64 tokens, vocabulary 4096
       chain --growth [TOKENS]         time per token from 10^4 tokens up to this many; default 10^7
       chain --help

The chain: logits, log-probabilities, KL, rewards, advantages, whitening, loss, gradient of the log-probabilities,
gradient of the logits. Times are the shorter of two runs, after a first one that makes the pipelines.";

/// Tokens of one response.
const WIDTH: usize = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let number = |place: usize, default: usize| match arguments.get(place) {
        Some(text) => match text.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{text}: expected a number of at least 1; see --help")),
        },
        None => Ok(default),
    };
    match arguments.first().map(String::as_str) {
        Some("--help" | "-h") => println!("{HELP}"),
        Some("--growth") => {
            let most = number(1, 10_000_000)?;
            growth(&device()?, most)?;
        }
        _ => {
            let (tokens, vocab) = (number(0, 64)?, number(1, 4096)?);
            chain(&device()?, tokens, vocab)?;
        }
    }
    Ok(())
}

fn device() -> Result<Gpu, GpuError> {
    let gpu = pollster::block_on(Gpu::new())?;
    let info = gpu.info();
    println!("adapter    {} ({:?}, {:?})", info.name, info.device_type, info.backend);
    if info.device_type == DeviceType::Cpu {
        println!("           a software adapter: it runs on the processor, and its times say nothing about a GPU");
    }
    Ok(gpu)
}

/// Numbers around 0, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }

    fn take(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.next() * scale).collect()
    }
}

/// A batch of responses with everything that the chain reads.
struct Data {
    offsets: Vec<u32>,
    keep: Vec<bool>,
    vocab: usize,
    logits: Vec<f32>,
    ids: Vec<u32>,
    old: Vec<f32>,
    reference: Vec<f32>,
    values: Vec<f32>,
    scores: Vec<f32>,
    bootstrap: Vec<f32>,
}

impl Data {
    fn new(tokens: usize, vocab: usize, width: usize) -> Self {
        let mut numbers = Numbers(7);
        let sequences = tokens.div_ceil(width);
        let log_probs = |numbers: &mut Numbers| (0..tokens).map(|_| -8.0 - numbers.next()).collect();
        Self {
            offsets: (0..=sequences).map(|sequence| (sequence * width).min(tokens) as u32).collect(),
            keep: (0..tokens).map(|token| token % 9 != 4).collect(),
            vocab,
            logits: numbers.take(tokens * vocab, 4.0),
            ids: (0..tokens).map(|token| (token % vocab.max(1)) as u32).collect(),
            old: log_probs(&mut numbers),
            reference: log_probs(&mut numbers),
            values: numbers.take(tokens, 1.0),
            scores: numbers.take(sequences, 1.0),
            bootstrap: vec![0.0; sequences],
        }
    }

    fn batch(&self) -> tokenwise::Result<Batch<'_>> {
        Batch::new(Layout::packed(&self.offsets)?, Mask::new(&self.keep))
    }

    fn on_core<L: GpuLogit>(&self, logits: &[L]) -> tokenwise::Result<(PolicyLoss, Vec<f32>)> {
        let batch = self.batch()?;
        let (vocab, ids) = (self.vocab, &self.ids[..]);
        let zeros = || vec![0.0; batch.tokens()];
        let (mut log_probs, mut entropy) = (zeros(), zeros());
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        let policy = PolicyConfig::default();
        log_probs_and_entropy(&batch, LogProbInput { logits, vocab, tokens: ids }, &policy, output)?;
        let (mut kl, mut scores, mut rewards) = (zeros(), zeros(), zeros());
        let input = KlInput { log_probs: &log_probs, ref_log_probs: &self.reference };
        kl_estimate(&batch, input, &KlConfig::default(), &mut kl)?;
        place_scores(&batch, &self.scores, &mut scores)?;
        let input = ShapeInput { scores: &scores, kl: &kl };
        shape_rewards(&batch, input, &ShapeConfig::default(), &mut rewards)?;
        let (mut advantages, mut returns, mut white, mut grad) = (zeros(), zeros(), zeros(), zeros());
        let input = GaeInput { rewards: &rewards, values: &self.values, bootstrap: &self.bootstrap };
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        gae(&batch, input, &GaeConfig::default(), output)?;
        whiten(&batch, &advantages, &WhitenConfig::default(), &mut white)?;
        let input = PolicyLossInput::new(&log_probs, &self.old, &white);
        let loss = ppo_clip(&batch, input, &PpoConfig::default(), &mut grad)?;
        let mut grad_logits = vec![0.0; logits.len()];
        let grad_entropy = zeros();
        let input =
            LogitsGradientInput { logits, vocab, tokens: ids, grad_log_probs: &grad, grad_entropy: &grad_entropy };
        logits_gradient(&batch, input, &policy, &mut grad_logits)?;
        Ok((loss, grad_logits))
    }

    /// Everything that the losses read, on the host.
    fn inputs(&self, log_probs: Input<'static>) -> Inputs<'_> {
        Inputs {
            log_probs,
            old: Input::from(&self.old),
            reference: Input::from(&self.reference),
            values: Input::from(&self.values),
            scores: Input::from(&self.scores),
            bootstrap: Input::from(&self.bootstrap),
        }
    }

    /// The same on the device.
    fn resident(&self, gpu: &Gpu) -> Result<Inputs<'static>, GpuError> {
        let mut recording = gpu.record();
        let mut column = |numbers: &[f32]| recording.upload(numbers).map(Input::from);
        let inputs = Inputs {
            log_probs: column(&self.old)?,
            old: column(&self.old)?,
            reference: column(&self.reference)?,
            values: column(&self.values)?,
            scores: column(&self.scores)?,
            bootstrap: column(&self.bootstrap)?,
        };
        pollster::block_on(recording.submit())?;
        Ok(inputs)
    }

    /// The whole chain in one submission.
    fn on_gpu(&self, gpu: &Gpu, logits: Input<'_>) -> Result<(PolicyLoss, Vec<f32>, Report), GpuError> {
        let batch = GpuBatch::new(self.batch()?);
        let mut recording = gpu.record();
        let input = LogitColumns { logits, vocab: self.vocab, tokens: Input::from(&self.ids) };
        let policy = recording.log_probs(&batch, &input, &PolicyConfig::default())?;
        let loss = self.inputs(Input::from(&policy.log_probs)).losses(&mut recording, &batch)?;
        let grad: Column = recording.logits_gradient(&batch, &policy, &Input::from(&loss.grad), None)?;
        let grad = recording.download(&grad);
        let done = pollster::block_on(recording.submit())?;
        Ok((done.get(&loss.loss), done.floats(grad).to_vec(), done.report().clone()))
    }
}

/// What the losses read, on the host or on the device.
struct Inputs<'a> {
    log_probs: Input<'a>,
    old: Input<'a>,
    reference: Input<'a>,
    values: Input<'a>,
    scores: Input<'a>,
    bootstrap: Input<'a>,
}

impl Inputs<'_> {
    /// Records everything after the log-probabilities.
    fn losses(&self, recording: &mut Recording<'_>, batch: &GpuBatch<'_>) -> Result<PolicyLossResult, GpuError> {
        let kl = KlColumns { log_probs: self.log_probs.clone(), ref_log_probs: self.reference.clone() };
        let kl = recording.kl_estimate(batch, &kl, &KlConfig::default())?;
        let scores = recording.place_scores(batch, &self.scores)?;
        let shape = ShapeColumns { scores: scores.into(), kl: kl.into() };
        let rewards = recording.shape_rewards(batch, &shape, &ShapeConfig::default())?;
        let input =
            GaeColumns { rewards: rewards.into(), values: self.values.clone(), bootstrap: self.bootstrap.clone() };
        let (advantages, _) = recording.gae(batch, &input, &GaeConfig::default())?;
        let white = recording.whiten(batch, &advantages.into(), &WhitenConfig::default())?;
        let input = PolicyLossColumns {
            log_probs: self.log_probs.clone(),
            old_log_probs: self.old.clone(),
            advantages: white.into(),
            weights: None,
        };
        recording.ppo_clip(batch, &input, &PpoConfig::default())
    }
}

fn chain(gpu: &Gpu, tokens: usize, vocab: usize) -> Result<(), Box<dyn Error>> {
    let data = Data::new(tokens, vocab, WIDTH);
    let kept = data.batch()?.kept();
    println!("batch      {tokens} tokens in responses of {WIDTH}, {kept} of them kept; vocabulary {vocab}");
    println!("chain      logits, log-probabilities, KL, rewards, advantages, whitening, loss, gradient of the logits");
    compare("f32", gpu, &data, &data.logits, Input::from(&data.logits))?;
    let halves: Vec<bf16> = data.logits.iter().map(|&logit| bf16::from_f32(logit)).collect();
    compare("bf16", gpu, &data, &halves, Input::from(&halves))
}

/// The chain on the core and on the GPU, from the same logits.
fn compare<L: GpuLogit>(
    name: &str,
    gpu: &Gpu,
    data: &Data,
    logits: &[L],
    input: Input<'_>,
) -> Result<(), Box<dyn Error>> {
    println!("\n{name} logits");
    let mut core_time = Duration::MAX;
    let mut core = data.on_core(logits)?;
    for _ in 0..2 {
        let start = Instant::now();
        core = data.on_core(logits)?;
        core_time = core_time.min(start.elapsed());
    }
    println!("core       {core_time:.3?} on one thread");
    let (mut loss, mut grad, mut report) = data.on_gpu(gpu, input.clone())?;
    for run in 0..2 {
        let found = data.on_gpu(gpu, input.clone())?;
        if run == 0 || found.2.host < report.host {
            (loss, grad, report) = found;
        }
    }
    let time = |time: Option<Duration>| time.map_or("not measured".into(), |time| format!("{time:.3?}"));
    println!("GPU        {} with all transfers; the kernels alone: {}", time(report.host), time(report.device));
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!(
        "moved      {:.1} MB to the device, {:.1} MB back, {} dispatches in one submission",
        megabytes(report.bytes_up),
        megabytes(report.bytes_down),
        report.dispatches
    );
    let difference = (core.0.loss - loss.loss).abs();
    println!("loss       {:.9} on the core, {:.9} on the GPU, difference {difference:.1e}", core.0.loss, loss.loss);
    let largest = core.1.iter().fold(0.0_f32, |largest, grad| largest.max(grad.abs()));
    let difference = grad.iter().zip(&core.1).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs()));
    println!("gradient   largest entry {largest:.3e}, largest difference {difference:.1e}");
    Ok(())
}

/// What one run took.
struct Measured {
    /// The fastest run.
    report: Report,
    /// Processor time of this process per run, where it is known. On a software adapter it is the time of the kernels,
    /// and changes little with what else the machine does.
    processor: Option<Duration>,
}

/// At least three runs and half a second, after one that makes the pipelines.
fn measured(mut run: impl FnMut() -> Result<Report, GpuError>) -> Result<Measured, GpuError> {
    run()?;
    let (start, processor, mut runs) = (Instant::now(), processor_time(), 1);
    let mut report = run()?;
    while runs < 3 || start.elapsed() < Duration::from_millis(500) {
        let next = run()?;
        if next.host < report.host {
            report = next;
        }
        runs += 1;
    }
    let processor = processor.zip(processor_time()).map(|(before, after)| (after - before) / runs);
    Ok(Measured { report, processor })
}

/// Processor time of this process, on Linux.
fn processor_time() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // behind the name of the process, which may contain anything: user and system time, in hundredths of a second
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}

/// The three times of a measurement, in nanoseconds per token.
fn per_token(measured: &Measured, tokens: usize) -> String {
    let times = [measured.report.host, measured.report.device, measured.processor];
    let text = |time: Option<Duration>| match time {
        Some(time) => format!("{:>12.2}", time.as_secs_f64() * 1e9 / tokens as f64),
        None => format!("{:>12}", "-"),
    };
    times.map(text).concat()
}

/// Everything after the log-probabilities, with all columns on the device: time per token by the number of tokens.
fn growth(gpu: &Gpu, most: usize) -> Result<(), Box<dyn Error>> {
    println!(
        "\nKL, rewards, advantages, whitening, loss and its gradient; responses of 1000 tokens, columns on the device"
    );
    println!("nanoseconds per token: the fastest run on the host and on the device, processor time of the mean run");
    println!("{:>16}{:>12}{:>12}{:>12}{:>12}", "tokens", "host", "device", "processor", "dispatches");
    let mut tokens = 10_000;
    while tokens <= most {
        let found = resident_losses(gpu, tokens)?;
        println!("{tokens:>16}{}{:>12}", per_token(&found, tokens), found.report.dispatches);
        tokens *= 10;
    }
    println!("\nGAE of 1000000 tokens, in short rows and in one");
    println!("{:>16}{:>12}{:>12}{:>12}{:>12}", "rows", "host", "device", "processor", "dispatches");
    for width in [1000, 1_000_000] {
        let found = resident_gae(gpu, 1_000_000, width)?;
        let rows = format!("{} x {width}", 1_000_000 / width);
        println!("{rows:>16}{}{:>12}", per_token(&found, 1_000_000), found.report.dispatches);
    }
    Ok(())
}

fn resident_losses(gpu: &Gpu, tokens: usize) -> Result<Measured, GpuError> {
    let data = Data::new(tokens, 0, 1000);
    let (batch, inputs) = (GpuBatch::new(data.batch()?), data.resident(gpu)?);
    measured(|| {
        let mut recording = gpu.record();
        inputs.losses(&mut recording, &batch)?;
        Ok(pollster::block_on(recording.submit())?.report().clone())
    })
}

fn resident_gae(gpu: &Gpu, tokens: usize, width: usize) -> Result<Measured, GpuError> {
    let data = Data::new(tokens, 0, width);
    let (batch, inputs) = (GpuBatch::new(data.batch()?), data.resident(gpu)?);
    let input = GaeColumns { rewards: inputs.old, values: inputs.values, bootstrap: inputs.bootstrap };
    measured(|| {
        let mut recording = gpu.record();
        recording.gae(&batch, &input, &GaeConfig::default())?;
        Ok(pollster::block_on(recording.submit())?.report().clone())
    })
}
