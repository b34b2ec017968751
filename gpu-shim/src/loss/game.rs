//! The losses that need more than the inputs of every policy loss: scores, a reference, weights of the dual game.

use tokenwise::{
    loss::{
        DualClip, DualGameConfig, DualGameInput, DualGameLoss, DualGradient, PolicyLossInput, ToprConfig, ToprInput,
    },
    Divisor,
};

use super::{
    check_config, named, plain,
    policy::{
        bound, clip_settings, clipped, kernel, wgsl, PolicyLossColumns, ADVANTAGES, BOUND, NEW, OLD, ROWS, TERMS,
        WEIGHTS,
    },
    LossResult, Weights,
};
use crate::{
    batch::GpuBatch,
    call::{batch, optional, policy_input, real, runners, Answer, Request, Runner},
    column::Input,
    error::GpuError,
    recording::{Pending, Recording},
    token::{bits, sequence, token, Setting, TokenKernel},
    weight::WeightColumn,
};

/// What [`Recording::topr`] reads.
#[derive(Clone, Debug)]
pub struct ToprColumns<'a> {
    /// The inputs common to all policy losses.
    pub policy: PolicyLossColumns<'a>,
    /// One score per sequence: above 0 for a good response.
    pub scores: Input<'a>,
}

/// What [`Recording::dual_game`] reads.
#[derive(Clone, Debug)]
pub struct DualGameColumns<'a> {
    /// The inputs common to all policy losses.
    pub policy: PolicyLossColumns<'a>,
    /// Log-probabilities of the reference; without them there is no KL.
    pub ref_log_probs: Option<Input<'a>>,
    /// The weight of each token.
    pub weight: WeightColumn<'a>,
}

const TOPR: TokenKernel = kernel!(
    "loss/topr",
    ["loss/topr"],
    [sequence("scores")],
    &[Setting::F32("share"), Setting::F32("positive"), Setting::F32("negative")]
);

const DUAL_GAME: TokenKernel = kernel!(
    "loss/dual_game",
    ["loss/clip" "weight/token_weight" "loss/dual_game"],
    [token("ref_log_probs"), token("structural")],
    &clipped::<15>(&[
        BOUND,
        Setting::F32("gamma"),
        Setting::F32("lambda"),
        Setting::F32("beta"),
        Setting::U32("through"),
        Setting::U32("weight"),
    ])
);

impl Recording<'_> {
    /// The core's [`topr`](tokenwise::loss::topr) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn topr(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &ToprColumns<'_>,
        config: &ToprConfig<'_>,
    ) -> Result<LossResult<f64>, GpuError> {
        input.policy.check(batch)?;
        input.scores.check_len("scores", batch.host().sequences())?;
        check_config(|one, grad| {
            let plain = ToprConfig { aggregate: Default::default(), ..*config };
            let input = ToprInput { policy: PolicyLossInput::new(&[0.0], &[0.0], &[0.0]), scores: &[0.0] };
            tokenwise::loss::topr(one, input, &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let settings = [config.positive, config.negative].map(bits);
        let extra = [Some(&input.scores)];
        let LossResult { grad, loss } =
            self.policy_loss(&TOPR, batch, &input.policy, &extra, weights, Divisor::Count, &settings)?;
        Ok(LossResult { grad, loss: Pending::new(move |done| done.get(&loss).loss) })
    }

    /// The core's [`dual_game`](tokenwise::loss::dual_game) and its gradient. With a reference and structural and
    /// rollout weights it binds nine storage buffers, one more than WebGPU guarantees.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn dual_game(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &DualGameColumns<'_>,
        config: &DualGameConfig<'_>,
    ) -> Result<LossResult<DualGameLoss>, GpuError> {
        input.policy.check(batch)?;
        if let Some(ref_log_probs) = &input.ref_log_probs {
            ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        }
        let (kind, structural) = input.weight.check(batch, input.ref_log_probs.is_some())?;
        check_config(|one, grad| {
            let plain = DualGameConfig { aggregate: Default::default(), ..*config };
            let input = DualGameInput::new(PolicyLossInput::new(&[0.0], &[0.0], &[0.0]));
            tokenwise::loss::dual_game(one, input, &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let mut settings = clip_settings(config.clip_low, config.clip_high, DualClip::Off).to_vec();
        let beta = if input.ref_log_probs.is_some() { config.beta } else { 0.0 };
        settings.push(bound(config.log_ratio_bound));
        settings.extend([config.gamma, config.lambda, beta].map(bits));
        settings.extend([u32::from(config.gradient == DualGradient::Through), kind]);
        let extra = [input.ref_log_probs.as_ref(), structural];
        let LossResult { grad, loss } =
            self.policy_loss(&DUAL_GAME, batch, &input.policy, &extra, weights, config.divisor, &settings)?;
        let loss = Pending::new(move |done| {
            let result = done.get(&loss);
            let mut game = DualGameLoss::default();
            game.loss = result.loss;
            game.clip_fraction = result.clip_fraction + result.clip_fraction_lower;
            game.clip_fraction_upper = result.clip_fraction;
            game.clip_fraction_lower = result.clip_fraction_lower;
            game.kl = result.kl;
            game
        });
        Ok(LossResult { grad, loss })
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![topr, dual_game];

fn topr(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<ToprConfig<'_>>()?;
    let input = ToprColumns { policy: policy_input(call)?, scores: real(call, "scores")? };
    Ok(plain(recording.topr(&batch(call)?, &input, &config)?))
}

fn dual_game(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<DualGameConfig<'_>>()?;
    let input = DualGameColumns {
        policy: policy_input(call)?,
        ref_log_probs: optional(call, "ref_log_probs")?,
        weight: WeightColumn::of(call)?,
    };
    let result = recording.dual_game(&batch(call)?, &input, &config)?;
    Ok(named(result, |result| {
        vec![
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_upper", result.clip_fraction_upper),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
        ]
    }))
}
