//! Policy losses of the ratio of a whole sequence: sums by sequence first, then tokens.

use tokenwise::{
    loss::{
        Aggregate, AggregateMode, Counts, DualClip, EmptyRows, GmpoConfig, GspoConfig, GspoForm, LuspoConfig,
        PolicyLoss, PolicyLossInput, VespoConfig, VespoLoss,
    },
    Error,
};

use super::{
    answer, check_config, mean_over, named,
    policy::{clip_settings, clipped, PolicyLossColumns, PolicyLossResult},
    LossResult, Weights,
};
use crate::{
    batch::GpuBatch,
    call::{batch, policy_input, runners, Answer, Request, Runner},
    column::Input,
    error::GpuError,
    fold::Fold,
    recording::{Pending, Recording},
    sequences::Rows,
    token::{bits, kernel, sequence, token, weight, whole, Setting, Term, TokenKernel},
};

const SHARE: Setting = Setting::F32("share");

const GSPO: TokenKernel = kernel(
    "loss/gspo",
    concat!(include_str!("../../shaders/loss/clip.wgsl"), include_str!("../../shaders/loss/gspo.wgsl")),
    &[token("advantages"), sequence("ratios"), weight("weights"), sequence("row_weights")],
    &["grad"],
    &[Term::Number("loss"), Term::Count("held")],
    &clipped::<10>(&[Setting::U32("token_form")]),
);

const GMPO_TOKENS: TokenKernel = kernel(
    "loss/gmpo tokens",
    include_str!("../../shaders/loss/gmpo_tokens.wgsl"),
    &[token("log_probs"), token("old_log_probs"), token("advantages")],
    &["held", "free"],
    &[Term::Count("above"), Term::Count("below"), Term::Number("kl")],
    &[Setting::F32("clip_low"), Setting::F32("clip_high")],
);

const GMPO_LOGS: TokenKernel = kernel(
    "loss/gmpo logs",
    include_str!("../../shaders/loss/gmpo_logs.wgsl"),
    &[weight("weights")],
    &["out"],
    &[],
    &[],
);

const GMPO: TokenKernel = kernel(
    "loss/gmpo",
    include_str!("../../shaders/loss/gmpo.wgsl"),
    &[token("held"), token("advantages"), token("logs"), token("counts")],
    &["factors"],
    &[Term::Number("loss")],
    &[SHARE],
);

const VESPO_LOGS: TokenKernel = kernel(
    "loss/vespo logs",
    include_str!("../../shaders/loss/vespo_logs.wgsl"),
    &[token("log_probs"), token("old_log_probs"), weight("weights")],
    &["out"],
    &[],
    &[],
);

const VESPO: TokenKernel = kernel(
    "loss/vespo",
    include_str!("../../shaders/loss/vespo.wgsl"),
    &[token("log_probs"), token("advantages"), sequence("log_ratios"), whole("firsts"), sequence("row_weights")],
    &["grad"],
    &[Term::Number("loss"), Term::Number("phi")],
    &[
        SHARE,
        Setting::F32("k_positive"),
        Setting::F32("lambda_positive"),
        Setting::F32("k_negative"),
        Setting::F32("lambda_negative"),
    ],
);

impl Recording<'_> {
    /// The core's [`gspo`](tokenwise::loss::gspo) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn gspo(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &PolicyLossColumns<'_>,
        config: &GspoConfig<'_>,
    ) -> Result<PolicyLossResult, GpuError> {
        input.check(batch)?;
        check_config(|one, grad| {
            let plain = GspoConfig { aggregate: Default::default(), ..*config };
            tokenwise::loss::gspo(one, PolicyLossInput::new(&[0.0], &[0.0], &[0.0]), &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let rows = Rows::new(self, batch)?;
        let (sums, log_ratios) = self.sequence_log_ratios(batch, &input.log_probs, &input.old_log_probs)?;
        let ratios = self.sequence_ratios(&rows, &sums, config.log_ratio_cap.unwrap_or(f64::INFINITY))?;
        let token_form = config.form == GspoForm::Token;
        let mut settings = clip_settings(config.clip_low, config.clip_high, DualClip::Off).to_vec();
        settings.push(token_form.into());
        let ratios = Input::Device(ratios);
        let inputs = [Some(&input.advantages), Some(&ratios)];
        let found = self.weighed(&GSPO, batch, &inputs, input.weights.as_ref(), weights.clone(), &settings)?;
        let mut grad = found.grad;
        if !token_form {
            let slopes = self.fold(Fold::Sum, batch, &grad)?;
            let of_rows = weights.rows.as_ref().map(|rows| self.upload(rows)).transpose()?;
            let factors = self.sequence_factors(&rows, &slopes, of_rows.as_ref(), weights.share)?;
            grad = self.spread(batch, None, &factors)?;
        }
        let mean = mean_over(batch, config.divisor);
        let loss = Pending::new(move |done| {
            let ([loss, held], log_ratios) = (done.sums(found.sums), done.get(&log_ratios));
            let mut result = PolicyLoss::default();
            result.loss = loss * found.share;
            result.clip_fraction = mean(held);
            result.kl = mean(-log_ratios);
            result
        });
        Ok(LossResult { grad, loss })
    }

    /// The core's [`luspo`](tokenwise::loss::luspo) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn luspo(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &PolicyLossColumns<'_>,
        config: &LuspoConfig,
    ) -> Result<PolicyLossResult, GpuError> {
        let mode = AggregateMode::SequenceMeanTokenSum;
        let config = GspoConfig {
            clip_low: config.clip_low,
            clip_high: config.clip_high,
            aggregate: Aggregate { mode, empty_rows: EmptyRows::Counted, ..Default::default() },
            ..Default::default()
        };
        self.gspo(batch, input, &config)
    }

    /// The core's [`gmpo`](tokenwise::loss::gmpo) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn gmpo(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &PolicyLossColumns<'_>,
        config: &GmpoConfig,
    ) -> Result<PolicyLossResult, GpuError> {
        input.check(batch)?;
        check_config(|one, grad| {
            tokenwise::loss::gmpo(one, PolicyLossInput::new(&[0.0], &[0.0], &[0.0]), config, grad)
        })?;
        let share = match config.counts {
            Counts::Global(counts) => counts.ranks as f64 / counts.sequences as f64,
            _ if batch.host().kept() == 0 => return Err(Error::EmptyMask.into()),
            _ => 1.0 / batch.host().sequences() as f64,
        };
        let rows = Rows::counted(self, batch, |kept| config.divisor.of(kept))?;
        let [new, old, advantages] = self.columns([&input.log_probs, &input.old_log_probs, &input.advantages])?;
        let widths = [config.clip_low, config.clip_high].map(bits);
        let given = [Some(&new), Some(&old), Some(&advantages)];
        let ([held, free], of_tokens) = self.tokens(&GMPO_TOKENS, batch, &given, &widths)?;
        let logs = match &input.weights {
            None => None,
            Some(weights) => {
                let weights = self.column(weights)?;
                let ([logs], _) = self.tokens(&GMPO_LOGS, batch, &[Some(&weights)], &[])?;
                Some(self.fold(Fold::Sum, batch, &logs)?)
            }
        };
        let held = self.fold(Fold::Sum, batch, &held)?;
        let advantages = self.fold(Fold::Sum, batch, &advantages)?;
        let given = [Some(&held), Some(&advantages), logs.as_ref(), Some(&rows.counts)];
        let ([factors], of_rows) = self.tokens(&GMPO, &rows, &given, &[bits(share)])?;
        let grad = self.spread(batch, Some(&free), &factors)?;
        let mean = mean_over(batch, config.divisor);
        let loss = Pending::new(move |done| {
            let ([above, below, kl], [loss]) = (done.sums(of_tokens.header), done.sums(of_rows.header));
            let mut result = PolicyLoss::default();
            result.loss = loss * share;
            result.clip_fraction = mean(above);
            result.clip_fraction_lower = mean(below);
            result.kl = mean(kl);
            result
        });
        Ok(LossResult { grad, loss })
    }

    /// The core's [`vespo`](tokenwise::loss::vespo) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn vespo(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &PolicyLossColumns<'_>,
        config: &VespoConfig<'_>,
    ) -> Result<LossResult<VespoLoss>, GpuError> {
        input.check(batch)?;
        check_config(|one, grad| {
            let plain = VespoConfig { aggregate: Default::default(), ..*config };
            tokenwise::loss::vespo(one, PolicyLossInput::new(&[0.0], &[0.0], &[0.0]), &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let [new, old] = self.columns([&input.log_probs, &input.old_log_probs])?;
        let rollout = input.weights.as_ref().map(|weights| self.column(weights)).transpose()?;
        let ([logs], _) = self.tokens(&VESPO_LOGS, batch, &[Some(&new), Some(&old), rollout.as_ref()], &[])?;
        let log_ratios = self.fold(Fold::Sum, batch, &logs)?;
        let first = |sequence| {
            let mut slots = batch.host().layout().slots(sequence).unwrap_or_default();
            // fits: a batch on the device has fewer than 2³² slots
            slots.find(|&slot| batch.host().mask().as_slice()[slot]).map_or(u32::MAX, |slot| slot as u32)
        };
        let firsts: Vec<u32> = (0..batch.host().sequences()).map(first).collect();
        let settings = [config.k_positive, config.lambda_positive, config.k_negative, config.lambda_negative].map(bits);
        let inputs = [&Input::Device(new), &input.advantages, &Input::Device(log_ratios), &Input::Words(&firsts)];
        let found = self.weighed(&VESPO, batch, &inputs.map(Some), None, weights, &settings)?;
        let sequences = batch.host().kept_sequences();
        let loss = Pending::new(move |done| {
            let [loss, phis] = done.sums(found.sums);
            let mut result = VespoLoss::default();
            result.loss = loss * found.share;
            result.phi_mean = if sequences == 0 { 0.0 } else { phis / sequences as f64 };
            result
        });
        Ok(LossResult { grad: found.grad, loss })
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![gspo, gmpo, luspo, vespo];

fn gspo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<GspoConfig<'_>>()?;
    Ok(answer("gspo", recording.gspo(&batch(call)?, &policy_input(call)?, &config)?))
}

fn gmpo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(answer("gmpo", recording.gmpo(&batch(call)?, &policy_input(call)?, &call.config()?)?))
}

fn luspo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(answer("luspo", recording.luspo(&batch(call)?, &policy_input(call)?, &call.config()?)?))
}

fn vespo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<VespoConfig<'_>>()?;
    let result = recording.vespo(&batch(call)?, &policy_input(call)?, &config)?;
    Ok(named(result, |result| vec![("loss", result.loss), ("phi_mean", result.phi_mean)]))
}
