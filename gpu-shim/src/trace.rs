//! **Stage 4 of 7 — advantage.** Off-policy targets: recursions whose decay is the token's own.
//!
//! The value of the next kept token is looked up by a first scan; the recursion is then `A = constant + decay·A` with
//! numbers that a formula of tokens has made.

use tokenwise::advantage::{
    self, Across, PufferConfig, PufferInput, PufferVariant, RetraceConfig, RetraceInput, TraceCoefficient,
    VtraceConfig, VtraceInput, VtraceOutput,
};

use crate::{
    advantage::GaeColumns,
    batch::{GpuBatch, Segmented},
    call::{batch, column, gae_input, real, runners, Answer, Request, Runner},
    column::{Column, Input},
    error::GpuError,
    metric::two_tokens,
    recording::Recording,
    scan::{Factors, ScanKernel},
    token::{bits, kernel, token, Setting, TokenKernel},
};

/// Log-probabilities of a token under two policies.
#[derive(Clone, Debug)]
pub struct PolicyColumns<'a> {
    /// Of the policy being trained.
    pub log_probs: Input<'a>,
    /// Of the policy that sampled.
    pub old_log_probs: Input<'a>,
}

impl PolicyColumns<'_> {
    fn check(&self, batch: &GpuBatch<'_>) -> Result<(), GpuError> {
        self.log_probs.check_len("log_probs", batch.tokens())?;
        self.old_log_probs.check_len("old_log_probs", batch.tokens())
    }
}

const AFFINE: ScanKernel = ScanKernel {
    label: "advantage/affine",
    steps: include_str!("../shaders/advantage/affine.wgsl"),
    inputs: 3,
    per_sequence: 1,
    outputs: 2,
};

const NEXT_VALUE: ScanKernel = ScanKernel {
    label: "advantage/next_value",
    steps: include_str!("../shaders/advantage/next_value.wgsl"),
    inputs: 2,
    per_sequence: 1,
    outputs: 1,
};

const DELTA: TokenKernel = kernel(
    "advantage/delta",
    include_str!("../shaders/advantage/delta.wgsl"),
    &[token("rewards"), token("values"), token("next_values")],
    &["deltas"],
    &[],
    &[Setting::F32("gamma")],
);

pub(crate) const ADD: TokenKernel = kernel(
    "advantage/add",
    include_str!("../shaders/advantage/add.wgsl"),
    &[token("x"), token("y")],
    &["sum"],
    &[],
    &[Setting::F32("factor")],
);

pub(crate) const SUBTRACT: TokenKernel = kernel(
    "advantage/subtract",
    include_str!("../shaders/advantage/subtract.wgsl"),
    &[token("x"), token("y")],
    &["difference"],
    &[],
    &[],
);

const VTRACE_STEPS: TokenKernel = kernel(
    "advantage/vtrace_steps",
    concat!(include_str!("../shaders/advantage/cap.wgsl"), include_str!("../shaders/advantage/vtrace_steps.wgsl")),
    &[token("log_probs"), token("old_log_probs"), token("deltas")],
    &["constants", "decays"],
    &[],
    &[Setting::F32("decay"), Setting::F32("rho"), Setting::F32("c"), Setting::F32("leak")],
);

const VTRACE: TokenKernel = kernel(
    "advantage/vtrace",
    concat!(include_str!("../shaders/advantage/cap.wgsl"), include_str!("../shaders/advantage/vtrace.wgsl")),
    &[token("log_probs"), token("old_log_probs"), token("deltas"), token("ahead")],
    &["advantages"],
    &[],
    &[Setting::F32("decay"), Setting::F32("pg"), Setting::F32("leak")],
);

const TRACE_COEFFICIENT: TokenKernel = kernel(
    "advantage/trace_coefficient",
    include_str!("../shaders/advantage/trace_coefficient.wgsl"),
    &[token("log_probs"), token("old_log_probs")],
    &["c"],
    &[],
    &[Setting::U32("coefficient"), Setting::F32("lambda")],
);

const RETRACE_STEPS: TokenKernel = kernel(
    "advantage/retrace_steps",
    include_str!("../shaders/advantage/retrace_steps.wgsl"),
    &[token("c"), token("values"), token("rewards"), token("action_values")],
    &["constants", "decays"],
    &[],
    &[Setting::F32("gamma")],
);

const PUFFER_STEPS: TokenKernel = kernel(
    "advantage/puffer_steps",
    include_str!("../shaders/advantage/puffer_steps.wgsl"),
    &[token("rewards"), token("values"), token("next_values"), token("ratios")],
    &["constants", "decays"],
    &[],
    &[Setting::F32("gamma"), Setting::F32("decay"), Setting::F32("rho"), Setting::F32("c"), Setting::U32("v4")],
);

const UPGO_STEPS: TokenKernel = kernel(
    "advantage/upgo_steps",
    include_str!("../shaders/advantage/upgo_steps.wgsl"),
    &[token("rewards"), token("values"), token("next_values")],
    &["constants", "decays"],
    &[],
    &[],
);

const NO_FACTORS: Factors = Factors { gamma: 0.0, decay: 0.0, across: Across::StepOver };

impl Recording<'_> {
    /// The value of the next kept token, the bootstrap behind the last one.
    fn next_values(&mut self, batch: &GpuBatch<'_>, values: &Column, bootstrap: &Column) -> Result<Column, GpuError> {
        let slots = batch.slots(self)?;
        let ([next], _) = self.scan(&NEXT_VALUE, &slots, &[values, bootstrap], NO_FACTORS)?;
        Ok(next)
    }

    /// `r + γ V' − V` with the value of the next kept token.
    pub(crate) fn deltas(
        &mut self,
        batch: &GpuBatch<'_>,
        rewards: &Column,
        values: &Column,
        bootstrap: &Column,
        gamma: f64,
    ) -> Result<Column, GpuError> {
        let next = self.next_values(batch, values, bootstrap)?;
        let ([deltas], _) = self.tokens(&DELTA, batch, &[Some(rewards), Some(values), Some(&next)], &[bits(gamma)])?;
        Ok(deltas)
    }

    /// `A = constant + decay·A` from the starts of the sequences, 0 if there are none; A, and that of the next token.
    pub(crate) fn affine(
        &mut self,
        batch: &GpuBatch<'_>,
        constants: &Column,
        decays: &Column,
        starts: Option<&Column>,
    ) -> Result<(Column, Column), GpuError> {
        let slots = batch.slots(self)?;
        let starts = match starts {
            Some(starts) => starts.clone(),
            None => self.upload(&vec![0.0; batch.host().sequences()])?,
        };
        let ([sums, ahead], _) = self.scan(&AFFINE, &slots, &[constants, decays, &starts], NO_FACTORS)?;
        Ok((sums, ahead))
    }

    /// V-trace targets and advantages: the core's [`vtrace`](advantage::vtrace).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn vtrace(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &GaeColumns<'_>,
        policy: &PolicyColumns<'_>,
        config: &VtraceConfig,
    ) -> Result<(Column, Column), GpuError> {
        input.check(batch)?;
        policy.check(batch)?;
        let two = [0.0_f32; 2];
        let output = VtraceOutput { targets: &mut [0.0; 2], advantages: &mut [0.0; 2] };
        let two = VtraceInput { rewards: &two, values: &two, bootstrap: &two, log_probs: &two, old_log_probs: &two };
        advantage::vtrace(&two_tokens()?, two, config, output)?;
        let [rewards, values, bootstrap] = self.columns([&input.rewards, &input.values, &input.bootstrap])?;
        let [new, old] = self.columns([&policy.log_probs, &policy.old_log_probs])?;
        let deltas = self.deltas(batch, &rewards, &values, &bootstrap, config.gamma)?;
        let (decay, leak) = (bits(config.gamma * config.lambda), bits(1.0 - config.alpha));
        let settings = [decay, bits(config.rho_bar), bits(config.c_bar), leak];
        let given = [Some(&new), Some(&old), Some(&deltas)];
        let ([constants, decays], _) = self.tokens(&VTRACE_STEPS, batch, &given, &settings)?;
        let (errors, ahead) = self.affine(batch, &constants, &decays, None)?;
        let ([targets], _) = self.tokens(&ADD, batch, &[Some(&values), Some(&errors)], &[bits(1.0)])?;
        let given = [Some(&new), Some(&old), Some(&deltas), Some(&ahead)];
        let ([advantages], _) = self.tokens(&VTRACE, batch, &given, &[decay, bits(config.rho_bar_pg), leak])?;
        Ok((targets, advantages))
    }

    /// Retrace targets: the core's [`retrace`](advantage::retrace).
    ///
    /// # Errors
    ///
    /// As [`Self::vtrace`].
    pub fn retrace(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &GaeColumns<'_>,
        action_values: &Input<'_>,
        policy: &PolicyColumns<'_>,
        config: &RetraceConfig,
    ) -> Result<Column, GpuError> {
        input.rewards.check_len("rewards", batch.tokens())?;
        input.values.check_len("values", batch.tokens())?;
        action_values.check_len("action_values", batch.tokens())?;
        input.bootstrap.check_len("bootstrap", batch.host().sequences())?;
        policy.check(batch)?;
        let two = [0.0_f32; 2];
        let two = RetraceInput {
            rewards: &two,
            values: &two,
            action_values: &two,
            bootstrap: &two,
            log_probs: &two,
            old_log_probs: &two,
        };
        advantage::retrace(&two_tokens()?, two, config, &mut [0.0; 2])?;
        let [rewards, values, bootstrap] = self.columns([&input.rewards, &input.values, &input.bootstrap])?;
        let [actions, new, old] = self.columns([action_values, &policy.log_probs, &policy.old_log_probs])?;
        // must match the shader
        let coefficient = match config.coefficient {
            TraceCoefficient::Importance => 0,
            TraceCoefficient::Lambda => 1,
            TraceCoefficient::TreeBackup => 2,
            _ => 3,
        };
        let settings = [coefficient, bits(config.lambda)];
        let ([c], _) = self.tokens(&TRACE_COEFFICIENT, batch, &[Some(&new), Some(&old)], &settings)?;
        let given = [Some(&c), Some(&values), Some(&rewards), Some(&actions)];
        let ([constants, decays], _) = self.tokens(&RETRACE_STEPS, batch, &given, &[bits(config.gamma)])?;
        let (_, ahead) = self.affine(batch, &constants, &decays, Some(&bootstrap))?;
        let ([targets], _) = self.tokens(&ADD, batch, &[Some(&rewards), Some(&ahead)], &[bits(config.gamma)])?;
        Ok(targets)
    }

    /// GAE with capped ratios: the core's [`puffer_advantage`](advantage::puffer_advantage).
    ///
    /// # Errors
    ///
    /// As [`Self::vtrace`].
    pub fn puffer_advantage(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &GaeColumns<'_>,
        ratios: &Input<'_>,
        config: &PufferConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        ratios.check_len("ratios", batch.tokens())?;
        let two = [0.0_f32; 2];
        let two = PufferInput { rewards: &two, values: &two, bootstrap: &two, ratios: &two };
        advantage::puffer_advantage(&two_tokens()?, two, config, &mut [0.0; 2])?;
        let [rewards, values, bootstrap] = self.columns([&input.rewards, &input.values, &input.bootstrap])?;
        let ratios = self.column(ratios)?;
        let next = self.next_values(batch, &values, &bootstrap)?;
        let PufferConfig { gamma, lambda, rho_bar, c_bar, variant } = *config;
        let v4 = u32::from(variant == PufferVariant::V4);
        let settings = [bits(gamma), bits(gamma * lambda), bits(rho_bar), bits(c_bar), v4];
        let given = [Some(&rewards), Some(&values), Some(&next), Some(&ratios)];
        let ([constants, decays], _) = self.tokens(&PUFFER_STEPS, batch, &given, &settings)?;
        Ok(self.affine(batch, &constants, &decays, None)?.0)
    }

    /// Returns that end where the value is better: the core's [`upgo`](advantage::upgo).
    ///
    /// # Errors
    ///
    /// As [`Self::vtrace`].
    pub fn upgo(&mut self, batch: &GpuBatch<'_>, input: &GaeColumns<'_>) -> Result<Column, GpuError> {
        input.check(batch)?;
        let [rewards, values, bootstrap] = self.columns([&input.rewards, &input.values, &input.bootstrap])?;
        let next = self.next_values(batch, &values, &bootstrap)?;
        let given = [Some(&rewards), Some(&values), Some(&next)];
        let ([constants, decays], _) = self.tokens(&UPGO_STEPS, batch, &given, &[])?;
        let (_, ahead) = self.affine(batch, &constants, &decays, Some(&bootstrap))?;
        let ([returns], _) = self.tokens(&ADD, batch, &[Some(&rewards), Some(&ahead)], &[bits(1.0)])?;
        Ok(returns)
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![upgo: GAE, vtrace: GAE, retrace: GAE, puffer_advantage: GAE];

fn policy<'a>(call: &Request<'_, 'a>) -> Result<PolicyColumns<'a>, GpuError> {
    Ok(PolicyColumns { log_probs: real(call, "log_probs")?, old_log_probs: real(call, "old_log_probs")? })
}

fn upgo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("returns", recording.upgo(&batch(call)?, &gae_input(call)?)?))
}

fn vtrace(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (targets, advantages) = recording.vtrace(&batch(call)?, &gae_input(call)?, &policy(call)?, &call.config()?)?;
    Ok(Answer { columns: vec![("targets", targets), ("advantages", advantages)], numbers: None })
}

fn retrace(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let actions = real(call, "action_values")?;
    let targets = recording.retrace(&batch(call)?, &gae_input(call)?, &actions, &policy(call)?, &call.config()?)?;
    Ok(column("targets", targets))
}

fn puffer_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let ratios = real(call, "ratios")?;
    let out = recording.puffer_advantage(&batch(call)?, &gae_input(call)?, &ratios, &call.config()?)?;
    Ok(column("advantages", out))
}
