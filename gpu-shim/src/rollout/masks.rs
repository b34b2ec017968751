//! Gates and masks by one rule.

use tokenwise::rollout::{
    self, GateConfig, GateLevel, GateMode, GateReport, GateStatistic, KlMaskConfig, OffPolicyConfig, OffPolicyInput,
    VetoConfig,
};

use super::{input, RolloutColumns, PAIR, TWO};
use crate::{
    batch::GpuBatch,
    call::{batch, column, numbers, real, runners, Answer, Request, Runner},
    column::Column,
    error::GpuError,
    fold::Fold,
    metric::{two_tokens, RatioColumns},
    recording::{Pending, Recording},
    token::{bits, kernel, sequence, token, Setting, Term, TokenKernel},
};

const GATE_SETTINGS: &[Setting] = &[
    Setting::U32("level"),
    Setting::U32("statistic"),
    Setting::U32("clip"),
    Setting::F32("lower"),
    Setting::F32("upper"),
];

const GATE_TOKENS: TokenKernel = kernel(
    "rollout/gate_tokens",
    concat!(
        include_str!("../../shaders/rollout/gate_statistic.wgsl"),
        include_str!("../../shaders/rollout/gate_tokens.wgsl")
    ),
    PAIR,
    &["statistics"],
    &[],
    GATE_SETTINGS,
);

const GATE: TokenKernel = kernel(
    "rollout/gate",
    concat!(include_str!("../../shaders/rollout/gate_statistic.wgsl"), include_str!("../../shaders/rollout/gate.wgsl")),
    &[token("old_log_probs"), token("rollout_log_probs"), sequence("sums"), sequence("counts")],
    &["weights"],
    &[Term::Number("kl"), Term::Count("outside"), Term::Count("sequences_outside")],
    GATE_SETTINGS,
);

const KL_MASK: TokenKernel = kernel(
    "rollout/kl_mask",
    include_str!("../../shaders/rollout/kl_mask.wgsl"),
    PAIR,
    &["keep"],
    &[],
    &[Setting::F32("tau")],
);

const VETO_TOKENS: TokenKernel = kernel(
    "rollout/veto_tokens",
    include_str!("../../shaders/rollout/veto_tokens.wgsl"),
    PAIR,
    &["veto"],
    &[],
    &[Setting::F32("lower"), Setting::F32("upper")],
);

const VETO: TokenKernel =
    kernel("rollout/veto", include_str!("../../shaders/rollout/veto.wgsl"), &[sequence("vetoes")], &["keep"], &[], &[]);

const OFF_POLICY: TokenKernel = kernel(
    "rollout/off_policy",
    include_str!("../../shaders/rollout/off_policy.wgsl"),
    &[sequence("sums"), sequence("counts"), token("advantages")],
    &["keep"],
    &[],
    &[Setting::F32("threshold")],
);

impl Recording<'_> {
    /// Weights of tokens or sequences whose statistic is inside a band, with the share outside: the core's
    /// [`rollout_gate`](rollout::rollout_gate).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn rollout_gate(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &GateConfig,
    ) -> Result<(Column, Pending<GateReport>), GpuError> {
        input.check(batch)?;
        rollout::rollout_gate(&two_tokens()?, TWO, config, &mut [0.0; 2])?;
        batch.check_some_kept()?;
        let [old, rollout] = self.pair(input)?;
        // must match the shaders
        let level = match config.level {
            GateLevel::Off => 0,
            GateLevel::Token => 1,
            _ => 2,
        };
        let statistic = match config.statistic {
            GateStatistic::Ratio => 0,
            GateStatistic::BinaryKl => 1,
            _ => 2,
        };
        // a divergence has no lower end
        let lower = if statistic == 0 { config.lower } else { f64::NEG_INFINITY };
        let clip = u32::from(config.mode == GateMode::Clip);
        let settings = [level, statistic, clip, bits(lower), bits(config.upper)];
        let sums = match config.level {
            GateLevel::Sequence => {
                let ([statistics], _) = self.tokens(&GATE_TOKENS, batch, &[Some(&old), Some(&rollout)], &settings)?;
                Some(self.fold(Fold::Sum, batch, &statistics)?)
            }
            _ => None,
        };
        let counts = batch.counts(self)?;
        let given = [Some(&old), Some(&rollout), sums.as_ref(), sums.as_ref().map(|_| &counts)];
        let ([weights], record) = self.tokens(&GATE, batch, &given, &settings)?;
        let (kept, with_kept) = (batch.host().kept() as f64, batch.host().kept_sequences() as f64);
        let (header, level) = (record.header, config.level);
        let report = Pending::new(move |done| {
            let [kl, outside, sequences_outside] = done.sums(header);
            let mut report = GateReport::default();
            report.filtered = match level {
                GateLevel::Off => 0.0,
                GateLevel::Sequence => sequences_outside / with_kept,
                _ => outside / kept,
            };
            report.kl = kl / kept;
            report
        });
        Ok((weights, report))
    }

    /// The tokens whose k2 is at most τ: the core's [`kl_mask`](rollout::kl_mask).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn kl_mask(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &KlMaskConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        rollout::kl_mask(&two_tokens()?, TWO, config, &mut [false; 2])?;
        let [old, rollout] = self.pair(input)?;
        let ([keep], _) = self.tokens(&KL_MASK, batch, &[Some(&old), Some(&rollout)], &[bits(config.tau)])?;
        Ok(keep)
    }

    /// The sequences of which no token's ratio is outside a band: the core's
    /// [`sequence_veto`](rollout::sequence_veto).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn sequence_veto(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RolloutColumns<'_>,
        config: &VetoConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        rollout::sequence_veto(&two_tokens()?, TWO, config, &mut [false; 2])?;
        let [old, rollout] = self.pair(input)?;
        let settings = [bits(config.lower), bits(config.upper)];
        let ([veto], _) = self.tokens(&VETO_TOKENS, batch, &[Some(&old), Some(&rollout)], &settings)?;
        let vetoes = self.fold(Fold::Max, batch, &veto)?;
        let ([keep], _) = self.tokens(&VETO, batch, &[Some(&vetoes)], &[])?;
        Ok(keep)
    }

    /// All tokens but those with a negative advantage in sequences that are far off-policy: the core's
    /// [`off_policy_sequence_mask`](rollout::off_policy_sequence_mask).
    ///
    /// # Errors
    ///
    /// As [`Self::rollout_weights`].
    pub fn off_policy_sequence_mask(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RatioColumns<'_>,
        config: &OffPolicyConfig,
    ) -> Result<Column, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        input.advantages.check_len("advantages", batch.tokens())?;
        let two = [0.0_f32; 2];
        let two = OffPolicyInput { log_probs: &two, old_log_probs: &two, advantages: &two };
        rollout::off_policy_sequence_mask(&two_tokens()?, two, config, &mut [false; 2])?;
        let [old, new, advantages] = self.columns([&input.old_log_probs, &input.log_probs, &input.advantages])?;
        let sums = self.log_ratios(batch, &[old, new])?;
        let counts = batch.counts(self)?;
        let given = [Some(&sums), Some(&counts), Some(&advantages)];
        let ([keep], _) = self.tokens(&OFF_POLICY, batch, &given, &[bits(config.threshold)])?;
        Ok(keep)
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![rollout_gate, kl_mask, sequence_veto, off_policy_sequence_mask];

fn rollout_gate(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (weights, report) = recording.rollout_gate(&batch(call)?, &input(call)?, &call.config()?)?;
    let report = numbers(report, |report| vec![("filtered", report.filtered), ("kl", report.kl)]);
    Ok(Answer { columns: vec![("weights", weights)], ..report })
}

fn kl_mask(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("keep", recording.kl_mask(&batch(call)?, &input(call)?, &call.config()?)?))
}

fn sequence_veto(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("keep", recording.sequence_veto(&batch(call)?, &input(call)?, &call.config()?)?))
}

fn off_policy_sequence_mask(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = RatioColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        advantages: real(call, "advantages")?,
    };
    Ok(column("keep", recording.off_policy_sequence_mask(&batch(call)?, &input, &call.config()?)?))
}
