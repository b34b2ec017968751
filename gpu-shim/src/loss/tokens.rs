//! Losses of one token beside the policy losses: aggregation, entropy, values, KL.

use tokenwise::{
    divergence::KlInput,
    loss::{Aggregate, EntropyBonusConfig, KlLoss, KlLossConfig, ValueConfig, ValueFactor, ValueLoss, ValueLossInput},
    Divisor,
};

use super::{check_config, mean_over, named, plain, LossResult, Weights};
use crate::{
    batch::GpuBatch,
    call::{batch, kl_input, numbers, real, runners, Answer, Request, Runner},
    column::Input,
    divergence::{kl_settings, KlColumns, KL_SETTINGS},
    error::GpuError,
    recording::{Pending, Recording},
    token::{bits, kernel, sequence, token, Setting, Term, TokenKernel},
};

/// What [`Recording::value_loss`] reads.
#[derive(Clone, Debug)]
pub struct ValueLossColumns<'a> {
    /// The critic's new values.
    pub predictions: Input<'a>,
    /// The values at the time of sampling.
    pub values: Input<'a>,
    /// Returns.
    pub returns: Input<'a>,
}

const SHARE: Setting = Setting::F32("share");

const AGGREGATE: TokenKernel = kernel(
    "loss/aggregate",
    include_str!("../../shaders/loss/aggregate.wgsl"),
    &[token("losses"), sequence("row_weights")],
    &["weights"],
    &[Term::Number("loss")],
    &[SHARE],
);

const VALUE_LOSS: TokenKernel = kernel(
    "loss/value_loss",
    include_str!("../../shaders/loss/value_loss.wgsl"),
    &[token("predictions"), token("values"), token("returns"), sequence("row_weights")],
    &["grad"],
    &[Term::Number("loss"), Term::Count("held")],
    &[SHARE, Setting::F32("clip")],
);

const KL_LOSS_SETTINGS: &[Setting] = &[
    SHARE,
    Setting::F32("coefficient"),
    KL_SETTINGS[0],
    KL_SETTINGS[1],
    KL_SETTINGS[2],
    KL_SETTINGS[3],
    KL_SETTINGS[4],
];

const KL_LOSS: TokenKernel = kernel(
    "loss/kl_loss",
    concat!(include_str!("../../shaders/divergence/kl.wgsl"), include_str!("../../shaders/loss/kl_loss.wgsl"),),
    &[token("log_probs"), token("ref_log_probs"), sequence("row_weights")],
    &["grad"],
    &[Term::Number("loss"), Term::Number("sum")],
    KL_LOSS_SETTINGS,
);

/// Magnitude of the value clip that stands for none: values plus or minus it stay finite.
const NO_CLIP: f64 = 8e37;

impl Recording<'_> {
    /// The core's [`aggregate`](tokenwise::loss::aggregate); the gradient is the weight of each token.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn aggregate(
        &mut self,
        batch: &GpuBatch<'_>,
        losses: &Input<'_>,
        config: &Aggregate<'_>,
    ) -> Result<LossResult<f64>, GpuError> {
        losses.check_len("losses", batch.tokens())?;
        let weights = Weights::new(batch.host(), config)?;
        self.aggregated(batch, losses, weights)
    }

    fn aggregated(
        &mut self,
        batch: &GpuBatch<'_>,
        losses: &Input<'_>,
        weights: Weights,
    ) -> Result<LossResult<f64>, GpuError> {
        let found = self.weighed(&AGGREGATE, batch, &[Some(losses)], None, weights, &[])?;
        let loss = Pending::new(move |done| {
            let [loss] = done.sums(found.sums);
            loss * found.share
        });
        Ok(LossResult { grad: found.grad, loss })
    }

    /// The core's [`entropy_bonus`](tokenwise::loss::entropy_bonus); the gradient is ∂loss/∂entropy.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn entropy_bonus(
        &mut self,
        batch: &GpuBatch<'_>,
        entropy: &Input<'_>,
        config: &EntropyBonusConfig<'_>,
    ) -> Result<LossResult<f64>, GpuError> {
        entropy.check_len("entropy", batch.tokens())?;
        check_config(|one, grad| {
            let plain = EntropyBonusConfig { aggregate: Default::default(), ..*config };
            tokenwise::loss::entropy_bonus(one, &[0.0], &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?.times(-config.coefficient);
        self.aggregated(batch, entropy, weights)
    }

    /// The core's [`value_loss`](tokenwise::loss::value_loss); the gradient is ∂loss/∂predictions.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn value_loss(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &ValueLossColumns<'_>,
        config: &ValueConfig<'_>,
    ) -> Result<LossResult<ValueLoss>, GpuError> {
        input.predictions.check_len("predictions", batch.tokens())?;
        input.values.check_len("values", batch.tokens())?;
        input.returns.check_len("returns", batch.tokens())?;
        check_config(|one, grad| {
            let plain = ValueConfig { aggregate: Default::default(), ..*config };
            let input = ValueLossInput { predictions: &[0.0], values: &[0.0], returns: &[0.0] };
            tokenwise::loss::value_loss(one, input, &plain, grad)
        })?;
        let factor = if config.factor == ValueFactor::Half { 0.5 } else { 1.0 };
        let weights = Weights::new(batch.host(), &config.aggregate)?.times(factor);
        let inputs = [Some(&input.predictions), Some(&input.values), Some(&input.returns)];
        let settings = [bits(config.clip.map_or(NO_CLIP, |clip| clip.min(NO_CLIP)))];
        let found = self.weighed(&VALUE_LOSS, batch, &inputs, None, weights, &settings)?;
        let mean = mean_over(batch, config.divisor);
        let loss = Pending::new(move |done| {
            let [loss, held] = done.sums(found.sums);
            let mut result = ValueLoss::default();
            result.loss = loss * found.share;
            result.clip_fraction = mean(held);
            result
        });
        Ok(LossResult { grad: found.grad, loss })
    }

    /// The core's [`kl_loss`](tokenwise::loss::kl_loss); the gradient is ∂loss/∂log_probs.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn kl_loss(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &KlColumns<'_>,
        config: &KlLossConfig<'_>,
    ) -> Result<LossResult<KlLoss>, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        check_config(|one, grad| {
            let plain = KlLossConfig { aggregate: Default::default(), ..*config };
            tokenwise::loss::kl_loss(one, KlInput { log_probs: &[0.0], ref_log_probs: &[0.0] }, &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let inputs = [Some(&input.log_probs), Some(&input.ref_log_probs)];
        let settings = [&[bits(config.coefficient)][..], &kl_settings(&config.kl)].concat();
        let found = self.weighed(&KL_LOSS, batch, &inputs, None, weights, &settings)?;
        let (mean, coefficient) = (mean_over(batch, Divisor::Count), config.coefficient);
        let loss = Pending::new(move |done| {
            let [loss, sum] = done.sums(found.sums);
            let mut result = KlLoss::default();
            result.aggregated = loss * found.share;
            result.loss = coefficient * result.aggregated;
            result.mean = mean(sum);
            result
        });
        Ok(LossResult { grad: found.grad, loss })
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![aggregate, value_loss, entropy_bonus, kl_loss];

fn aggregate(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<Aggregate<'_>>()?;
    let LossResult { grad, loss } = recording.aggregate(&batch(call)?, &real(call, "losses")?, &config)?;
    Ok(Answer { columns: vec![("weights", grad)], ..numbers(loss, |loss| vec![("loss", loss)]) })
}

fn value_loss(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<ValueConfig<'_>>()?;
    let input = ValueLossColumns {
        predictions: real(call, "predictions")?,
        values: real(call, "values")?,
        returns: real(call, "returns")?,
    };
    let result = recording.value_loss(&batch(call)?, &input, &config)?;
    Ok(named(result, |result| vec![("loss", result.loss), ("clip_fraction", result.clip_fraction)]))
}

fn entropy_bonus(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<EntropyBonusConfig<'_>>()?;
    Ok(plain(recording.entropy_bonus(&batch(call)?, &real(call, "entropy")?, &config)?))
}

fn kl_loss(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<KlLossConfig<'_>>()?;
    let result = recording.kl_loss(&batch(call)?, &kl_input(call)?, &config)?;
    Ok(named(result, |result| vec![("loss", result.loss), ("aggregated", result.aggregated), ("mean", result.mean)]))
}
