//! [`Engine`]: the core's calls, each on the GPU or on the core.

use tokenwise::{
    advantage::{gae, whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    divergence::{kl_estimate, kl_gradient, KlConfig, KlInput},
    loss::{ppo_clip, PolicyLoss, PolicyLossInput, PpoConfig},
    policy::{log_probs_and_entropy, logits_gradient, LogProbInput, LogProbOutput, LogitsGradientInput, PolicyConfig},
    reward::{place_scores, shape_rewards, ShapeConfig, ShapeInput},
    Batch,
};
use tokenwise_catalogue::{Call, Entry};
use wgpu::DeviceType;

use crate::{
    batch::GpuBatch,
    call::or_core,
    column::{Column, Input},
    context::Gpu,
    divergence::KlColumns,
    error::GpuError,
    logit::GpuLogit,
    loss::PolicyLossColumns,
    policy::LogitColumns,
    recording::Recording,
    report::{Clock, Reason, Report},
    reward::ShapeColumns,
    split::{is_too_much, Part, Parts, Unit},
    thresholds::{Family, Thresholds},
};

/// The core's kernels, on the GPU where that pays and works, otherwise on the core. Every answer comes with a
/// [`Report`]: who computed and why, in what time, how many bytes moved.
///
/// A failure of the device is never an error of the call: the core answers, and the report has the reason. Batches that
/// are too large for the device are computed in parts.
///
/// # Example
///
/// ```
/// use tokenwise::{policy::*, Batch, Layout, Mask};
/// use tokenwise_gpu::{Engine, GpuError, Ran, Reason};
///
/// # pollster::block_on(async {
/// let engine = Engine::cpu();                 // or `Engine::new().await`, or `Engine::gpu(Gpu::new().await?)`
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let (mut log_probs, mut entropy) = ([9.0; 2], [9.0; 2]);
/// let report = engine
///     .log_probs_and_entropy(
///         &batch,
///         LogProbInput { logits: &[0.0, f32::NEG_INFINITY, f32::NAN, f32::NAN], vocab: 2, tokens: &[0, 99] },
///         &PolicyConfig::default(),
///         LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy },
///     )
///     .await?;
/// assert_eq!((log_probs, entropy), ([0.0, 0.0], [0.0, 0.0]));
/// assert!(matches!(report.ran, Ran::Core(Reason::NoGpu(GpuError::NoAdapter(_)))));
/// # Ok::<(), tokenwise::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Engine {
    gpu: Result<Gpu, GpuError>,
    thresholds: Thresholds,
}

impl Engine {
    /// Chooses for each call. Never fails: without a GPU, everything runs on the core. A software adapter runs on the
    /// same processor as the core, only slower, and is ignored; [`Engine::gpu`] accepts it.
    pub async fn new() -> Self {
        let gpu = Gpu::new().await.and_then(|gpu| match gpu.info().device_type {
            DeviceType::Cpu => Err(GpuError::NoAdapter(format!("{} is a software adapter", gpu.info().name))),
            _ => Ok(gpu),
        });
        Self { gpu, thresholds: Thresholds::default() }
    }

    /// Runs everything on the core.
    pub fn cpu() -> Self {
        let why = GpuError::NoAdapter("none was asked for".into());
        Self { gpu: Err(why), thresholds: Thresholds::NEVER }
    }

    /// Runs everything that has a kernel on this device, whatever the size. With
    /// [`Self::with_thresholds`] it chooses for each call.
    pub const fn gpu(gpu: Gpu) -> Self {
        Self { gpu: Ok(gpu), thresholds: Thresholds::ALWAYS }
    }

    /// Sets other thresholds, such as those that [`Self::calibrate`] measured.
    #[must_use]
    pub fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// The thresholds in use.
    pub const fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// The device, or why there is none.
    ///
    /// # Errors
    ///
    /// The error of [`Gpu::new`].
    pub const fn device(&self) -> Result<&Gpu, &GpuError> {
        self.gpu.as_ref()
    }

    /// The device, if the work is large enough.
    fn choose(&self, family: Family, work: usize) -> Result<&Gpu, Reason> {
        let gpu = self.gpu.as_ref().map_err(|error| Reason::NoGpu(error.clone()))?;
        let (work, threshold) = (work as u64, self.thresholds.of(family));
        if work < threshold {
            return Err(Reason::Small { work, threshold });
        }
        Ok(gpu)
    }

    /// Runs a formula of the catalogue by its name.
    ///
    /// # Errors
    ///
    /// The core's refusal, as [`GpuError::Core`] or [`GpuError::Refused`]; nothing was written.
    pub async fn call(&self, entry: &Entry, call: &mut Call<'_, f32>) -> Result<Report, GpuError> {
        let clock = Clock::start();
        let tried = self.try_call(entry, call).await;
        or_core(tried, &clock, entry, call)
    }

    /// As [`Self::call`], but what the GPU does not answer is left to the caller, who may have the same numbers in
    /// `f64`.
    ///
    /// # Errors
    ///
    /// Why the GPU did not answer; nothing was written. [`Reason::Failed`] with [`GpuError::Core`] or
    /// [`GpuError::Refused`] if the call is invalid.
    pub async fn try_call(&self, entry: &Entry, call: &mut Call<'_, f32>) -> Result<Report, Reason> {
        let family = Family::of(entry);
        let work = match (call.batch, call.groups) {
            (Some(batch), _) if family == Family::Logits => {
                batch.kept().saturating_mul(call.inputs.size("vocab").unwrap_or(0))
            }
            (Some(batch), _) => batch.tokens(),
            (None, groups) => groups.map_or(0, |groups| groups.sequences()),
        };
        let gpu = self.choose(family, work)?;
        match gpu.try_call(entry, call).await {
            Err(Reason::Failed(error)) if is_too_much(&error) => gpu.call_in_parts(entry, call, error).await,
            other => other,
        }
    }

    /// The core's [`log_probs_and_entropy`], of `f32`, `f16` or `bf16` logits. Rows of dropped slots are not sent.
    ///
    /// # Errors
    ///
    /// Those of the core. A device failure is not an error: the core computes, and the report has the reason.
    pub async fn log_probs_and_entropy<L: GpuLogit>(
        &self,
        batch: &Batch<'_>,
        input: LogProbInput<'_, L>,
        config: &PolicyConfig,
        output: LogProbOutput<'_, f32>,
    ) -> tokenwise::Result<Report> {
        let clock = Clock::start();
        let LogProbOutput { log_probs, entropy } = output;
        let reason = match self.choose(Family::Logits, batch.kept().saturating_mul(input.vocab)) {
            Ok(gpu) => {
                let output = LogProbOutput { log_probs: &mut *log_probs, entropy: &mut *entropy };
                match gpu.log_probs_and_entropy(batch, input, config, output).await {
                    Ok(report) => return Ok(report),
                    Err(error) => Reason::Failed(error),
                }
            }
            Err(reason) => reason,
        };
        log_probs_and_entropy(batch, input, config, LogProbOutput { log_probs, entropy })?;
        Ok(Report::core(reason, clock.elapsed()))
    }

    /// The core's [`logits_gradient`]: `f32`, of `f32`, `f16` or `bf16` logits.
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn logits_gradient<L: GpuLogit>(
        &self,
        batch: &Batch<'_>,
        input: LogitsGradientInput<'_, L>,
        config: &PolicyConfig,
        grad_logits: &mut [f32],
    ) -> tokenwise::Result<Report> {
        let (clock, vocab) = (Clock::start(), input.vocab);
        let record = |recording: &mut Recording<'_>, part: &Part<'_>| {
            let batch = GpuBatch::new(part.batch()?);
            let logits = LogitColumns {
                logits: part.logits(input.logits, vocab),
                vocab,
                tokens: Input::Words(part.of(Unit::Token, input.tokens)),
            };
            let of = recording.log_probs(&batch, &logits, config)?;
            let (log_probs, entropy) = (part.tokens(input.grad_log_probs), part.tokens(input.grad_entropy));
            recording.logits_gradient(&batch, &of, &log_probs, Some(&entropy))
        };
        let fits =
            input.logits.len() == grad_logits.len() && batch.tokens().checked_mul(vocab) == Some(grad_logits.len());
        let done = match (fits, self.choose(Family::Logits, batch.kept().saturating_mul(vocab))) {
            (true, Ok(gpu)) => gpu.in_parts(Parts::by_token(batch), Unit::Logit(vocab), record, grad_logits).await,
            (_, chosen) => Err(chosen.err().unwrap_or(Reason::Special)),
        };
        match done {
            Ok(report) => Ok(report),
            Err(reason) => {
                logits_gradient(batch, input, config, grad_logits)?;
                Ok(Report::core(reason, clock.elapsed()))
            }
        }
    }

    /// The core's [`kl_estimate`].
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn kl_estimate(
        &self,
        batch: &Batch<'_>,
        input: KlInput<'_, f32>,
        config: &KlConfig,
        kl: &mut [f32],
    ) -> tokenwise::Result<Report> {
        let record = |recording: &mut Recording<'_>, part: &Part<'_>| {
            recording.kl_estimate(&GpuBatch::new(part.batch()?), &kl_columns(part, input), config)
        };
        let fits = input.log_probs.len() == batch.tokens() && input.ref_log_probs.len() == batch.tokens();
        self.per_token(batch, fits, kl, record, |kl| kl_estimate(batch, input, config, kl)).await
    }

    /// The core's [`kl_gradient`].
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn kl_gradient(
        &self,
        batch: &Batch<'_>,
        input: KlInput<'_, f32>,
        config: &KlConfig,
        grad: &mut [f32],
    ) -> tokenwise::Result<Report> {
        let record = |recording: &mut Recording<'_>, part: &Part<'_>| {
            recording.kl_gradient(&GpuBatch::new(part.batch()?), &kl_columns(part, input), config)
        };
        let fits = input.log_probs.len() == batch.tokens() && input.ref_log_probs.len() == batch.tokens();
        self.per_token(batch, fits, grad, record, |grad| kl_gradient(batch, input, config, grad)).await
    }

    /// The core's [`place_scores`].
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn place_scores(
        &self,
        batch: &Batch<'_>,
        scores: &[f32],
        rewards: &mut [f32],
    ) -> tokenwise::Result<Report> {
        let record = |recording: &mut Recording<'_>, part: &Part<'_>| {
            let scores = Input::Host(part.of(Unit::Sequence, scores));
            recording.place_scores(&GpuBatch::new(part.batch()?), &scores)
        };
        let fits = scores.len() == batch.sequences();
        self.per_token(batch, fits, rewards, record, |rewards| place_scores(batch, scores, rewards)).await
    }

    /// The core's [`shape_rewards`].
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn shape_rewards(
        &self,
        batch: &Batch<'_>,
        input: ShapeInput<'_, f32>,
        config: &ShapeConfig,
        rewards: &mut [f32],
    ) -> tokenwise::Result<Report> {
        let record = |recording: &mut Recording<'_>, part: &Part<'_>| {
            let columns = ShapeColumns { scores: part.tokens(input.scores), kl: part.tokens(input.kl) };
            recording.shape_rewards(&GpuBatch::new(part.batch()?), &columns, config)
        };
        let fits = input.scores.len() == batch.tokens() && input.kl.len() == batch.tokens();
        self.per_token(batch, fits, rewards, record, |rewards| shape_rewards(batch, input, config, rewards)).await
    }

    /// The core's [`gae`].
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn gae(
        &self,
        batch: &Batch<'_>,
        input: GaeInput<'_, f32>,
        config: &GaeConfig,
        output: GaeOutput<'_, f32>,
    ) -> tokenwise::Result<Report> {
        let clock = Clock::start();
        let GaeOutput { advantages, returns } = output;
        let reason = match self.choose(Family::Scans, batch.tokens()) {
            Ok(gpu) => {
                let output = GaeOutput { advantages: &mut *advantages, returns: &mut *returns };
                match gpu.gae(batch, input, config, output).await {
                    Ok(report) => return Ok(report),
                    Err(error) => Reason::Failed(error),
                }
            }
            Err(reason) => reason,
        };
        gae(batch, input, config, GaeOutput { advantages, returns })?;
        Ok(Report::core(reason, clock.elapsed()))
    }

    /// The core's [`whiten`]. The moments are those of the whole batch, so it is not split.
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn whiten(
        &self,
        batch: &Batch<'_>,
        values: &[f32],
        config: &WhitenConfig,
        out: &mut [f32],
    ) -> tokenwise::Result<Report> {
        let clock = Clock::start();
        let record = |recording: &mut Recording<'_>, part: &Part<'_>| {
            recording.whiten(&GpuBatch::new(part.batch()?), &part.tokens(values), config)
        };
        let fits = values.len() == batch.tokens() && out.len() == batch.tokens();
        let done = match (fits, self.choose(Family::Tokens, batch.tokens())) {
            (true, Ok(gpu)) => gpu.in_parts(Parts::whole(batch), Unit::Token, record, out).await,
            (_, chosen) => Err(chosen.err().unwrap_or(Reason::Special)),
        };
        match done {
            Ok(report) => Ok(report),
            Err(reason) => {
                whiten(batch, values, config, out)?;
                Ok(Report::core(reason, clock.elapsed()))
            }
        }
    }

    /// The core's [`ppo_clip`]. The loss is that of the whole batch, so it is not split.
    ///
    /// # Errors
    ///
    /// As [`Self::log_probs_and_entropy`].
    pub async fn ppo_clip(
        &self,
        batch: &Batch<'_>,
        input: PolicyLossInput<'_, f32>,
        config: &PpoConfig<'_>,
        grad: &mut [f32],
    ) -> tokenwise::Result<(PolicyLoss, Report)> {
        let clock = Clock::start();
        let reason = match self.choose(Family::Tokens, batch.tokens()) {
            Ok(gpu) if grad.len() == batch.tokens() => match gpu.ppo_clip(batch, input, config, grad).await {
                Ok(done) => return Ok(done),
                Err(reason) => reason,
            },
            Ok(_) => Reason::Special,
            Err(reason) => reason,
        };
        let loss = ppo_clip(batch, input, config, grad)?;
        Ok((loss, Report::core(reason, clock.elapsed())))
    }

    /// A formula of one token, in parts where it has to be. Calls that do not fit go to the core, which refuses them.
    async fn per_token(
        &self,
        batch: &Batch<'_>,
        fits: bool,
        out: &mut [f32],
        record: impl Fn(&mut Recording<'_>, &Part<'_>) -> Result<Column, GpuError>,
        core: impl FnOnce(&mut [f32]) -> tokenwise::Result<()>,
    ) -> tokenwise::Result<Report> {
        let clock = Clock::start();
        let done = match (fits && out.len() == batch.tokens(), self.choose(Family::Tokens, batch.tokens())) {
            (true, Ok(gpu)) => gpu.in_parts(Parts::by_sequence(batch), Unit::Token, record, out).await,
            (_, chosen) => Err(chosen.err().unwrap_or(Reason::Special)),
        };
        match done {
            Ok(report) => Ok(report),
            Err(reason) => {
                core(out)?;
                Ok(Report::core(reason, clock.elapsed()))
            }
        }
    }
}

fn kl_columns<'a>(part: &Part<'_>, input: KlInput<'a, f32>) -> KlColumns<'a> {
    KlColumns { log_probs: part.tokens(input.log_probs), ref_log_probs: part.tokens(input.ref_log_probs) }
}

impl Gpu {
    /// Records, submits and copies one output, part by part; `unit` is what its entries belong to. Nothing is written
    /// before the last part is done.
    async fn in_parts(
        &self,
        mut parts: Parts<'_>,
        unit: Unit,
        record: impl Fn(&mut Recording<'_>, &Part<'_>) -> Result<Column, GpuError>,
        out: &mut [f32],
    ) -> Result<Report, Reason> {
        let clock = Clock::start();
        let mut report = Report::gpu();
        let mut found = Vec::new();
        while let Some(part) = parts.next() {
            let mut recording = self.record();
            let recorded = record(&mut recording, &part).map(|column| recording.download(&column));
            let done = match recorded {
                Ok(download) => recording.submit().await.map(|done| (done, download)),
                Err(error) => Err(error),
            };
            match done {
                Ok((done, _)) if done.report().special => return Err(Reason::Special),
                Ok((done, download)) => {
                    report.add(done.report());
                    found.push((part.range(unit), done, download));
                }
                Err(error) if is_too_much(&error) && parts.halve(&part) => {}
                Err(error) => return Err(Reason::Failed(error)),
            }
        }
        for (range, done, download) in found {
            done.copy_to(download, &mut out[range]);
        }
        report.host = clock.elapsed();
        Ok(report)
    }

    pub(crate) async fn ppo_clip(
        &self,
        batch: &Batch<'_>,
        input: PolicyLossInput<'_, f32>,
        config: &PpoConfig<'_>,
        grad: &mut [f32],
    ) -> Result<(PolicyLoss, Report), Reason> {
        let columns = PolicyLossColumns {
            log_probs: Input::Host(input.log_probs),
            old_log_probs: Input::Host(input.old_log_probs),
            advantages: Input::Host(input.advantages),
            weights: input.weights.map(Input::Host),
        };
        let mut recording = self.record();
        let result = recording.ppo_clip(&GpuBatch::new(*batch), &columns, config).map_err(Reason::Failed)?;
        let download = recording.download(&result.grad);
        let done = recording.submit().await.map_err(Reason::Failed)?;
        if done.report().special {
            return Err(Reason::Special);
        }
        done.copy_to(download, grad);
        Ok((done.get(&result.loss), done.report().clone()))
    }
}
