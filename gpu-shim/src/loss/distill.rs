//! Losses towards a teacher or a reference.

use tokenwise::{
    advantage::ReturnsConfig,
    loss::{
        IwOpdConfig, IwOpdInput, IwOpdLoss, OpdLoss, OpdLossConfig, OpdLossInput, OpdRoute, RefKlConfig, RefKlInput,
        RefKlLoss,
    },
    Divisor,
};

use super::{
    check_config, mean_over, named,
    policy::{clip_settings, clipped},
    LossResult, Weights,
};
use crate::{
    batch::GpuBatch,
    call::{batch, optional, real, runners, Answer, Request, Runner},
    column::{Column, Input},
    divergence::{kl_settings, KlColumns, KL_SETTINGS},
    error::GpuError,
    fold::Fold,
    recording::{Pending, Recording},
    sequences::All,
    token::{bits, kernel, sequence, token, weight, Setting, Term, TokenKernel},
};

/// What [`Recording::opd_loss`] reads.
#[derive(Clone, Debug)]
pub struct OpdLossColumns<'a> {
    /// Log-probabilities of the student.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Log-probabilities of the teacher.
    pub teacher_log_probs: Input<'a>,
    /// A weight for each token's loss; `None` gives weight 1.
    pub weights: Option<Input<'a>>,
}

/// What [`Recording::ref_kl`] reads.
#[derive(Clone, Debug)]
pub struct RefKlColumns<'a> {
    /// Log-probabilities of the policy being trained.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Log-probabilities of the teacher.
    pub ref_log_probs: Input<'a>,
    /// A weight for each token's loss; `None` gives weight 1.
    pub weights: Option<Input<'a>>,
}

/// What [`Recording::iw_opd`] reads.
#[derive(Clone, Debug)]
pub struct IwOpdColumns<'a> {
    /// Log-probabilities of the student.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Log-probabilities of the teacher.
    pub teacher_log_probs: Input<'a>,
}

const SHARE: Setting = Setting::F32("share");

const OPD_SETTINGS: [Setting; 17] = clipped(&[
    KL_SETTINGS[0],
    KL_SETTINGS[1],
    KL_SETTINGS[2],
    KL_SETTINGS[3],
    KL_SETTINGS[4],
    Setting::F32("log_ratio_bound"),
    Setting::F32("max_loss"),
    Setting::U32("route"),
]);

const OPD_LOSS: TokenKernel = kernel(
    "loss/opd_loss",
    concat!(
        include_str!("../../shaders/loss/policy.wgsl"),
        include_str!("../../shaders/loss/clip.wgsl"),
        include_str!("../../shaders/divergence/kl.wgsl"),
        include_str!("../../shaders/loss/opd_loss.wgsl"),
    ),
    &[
        token("log_probs"),
        token("old_log_probs"),
        token("teacher_log_probs"),
        weight("weights"),
        sequence("row_weights"),
    ],
    &["grad"],
    &[Term::Number("loss"), Term::Count("held"), Term::Count("held_below"), Term::Number("kl"), Term::Number("size")],
    &OPD_SETTINGS,
);

const REF_KL: TokenKernel = kernel(
    "loss/ref_kl",
    include_str!("../../shaders/loss/ref_kl.wgsl"),
    &[token("log_probs"), token("old_log_probs"), token("ref_log_probs"), weight("weights"), sequence("row_weights")],
    &["grad"],
    &[
        Term::Number("loss"),
        Term::Number("ref_kl"),
        Term::Count("fallen"),
        Term::Number("of_fallen"),
        Term::Number("of_kept"),
    ],
    &[SHARE, Setting::F32("fall"), Setting::F32("drift")],
);

const IW_OPD_ADVANTAGES: TokenKernel = kernel(
    "loss/iw_opd advantages",
    include_str!("../../shaders/loss/iw_opd_advantages.wgsl"),
    &[token("old_log_probs"), token("teacher_log_probs")],
    &["advantages", "sizes"],
    &[],
    &[],
);

const IW_OPD_WEIGHTS: TokenKernel = kernel(
    "loss/iw_opd weights",
    include_str!("../../shaders/loss/iw_opd_weights.wgsl"),
    &[token("rests"), sequence("totals")],
    &["ratios"],
    &[],
    &[Setting::F32("gamma"), Setting::F32("epsilon")],
);

const IW_OPD: TokenKernel = kernel(
    "loss/iw_opd",
    include_str!("../../shaders/loss/iw_opd.wgsl"),
    &[token("log_probs"), token("advantages"), token("ratios"), sequence("row_weights")],
    &["grad"],
    &[Term::Number("loss"), Term::Number("weighted"), Term::Number("size"), Term::Number("ratio")],
    &[SHARE],
);

impl Recording<'_> {
    /// The core's [`opd_loss`](tokenwise::loss::opd_loss) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn opd_loss(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &OpdLossColumns<'_>,
        config: &OpdLossConfig<'_>,
    ) -> Result<LossResult<OpdLoss>, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        input.teacher_log_probs.check_len("teacher_log_probs", batch.tokens())?;
        if let Some(weights) = &input.weights {
            weights.check_len("weights", batch.tokens())?;
        }
        check_config(|one, grad| {
            let plain = OpdLossConfig { aggregate: Default::default(), ..*config };
            tokenwise::loss::opd_loss(one, OpdLossInput::new(&[0.0], &[0.0], &[0.0]), &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?.times(config.coefficient);
        let [new, teacher] = self.columns([&input.log_probs, &input.teacher_log_probs])?.map(Input::Device);
        let mut settings = clip_settings(config.clip_low, config.clip_high, config.dual_clip).to_vec();
        settings.extend(kl_settings(&config.kl));
        settings.extend([config.log_ratio_bound, config.max_loss].map(|most| bits(most.unwrap_or(f64::INFINITY))));
        // must match shaders/loss/opd_loss.wgsl
        settings.push(match config.route {
            OpdRoute::Clipped => 0,
            OpdRoute::Surrogate => 1,
            OpdRoute::Reinforce => 2,
            _ => 3,
        });
        let inputs = [&new, &input.old_log_probs, &teacher].map(Some);
        let found = self.weighed(&OPD_LOSS, batch, &inputs, input.weights.as_ref(), weights, &settings)?;
        let pair = KlColumns { log_probs: new, ref_log_probs: teacher };
        let estimates = self.kl_estimate(batch, &pair, &config.kl)?;
        let range = self.extremes(batch, &estimates)?;
        let (mean, clip_mean) = (mean_over(batch, Divisor::Count), mean_over(batch, config.divisor));
        let loss = Pending::new(move |done| {
            let [loss, held, held_below, kl, size] = done.sums(found.sums);
            let mut result = OpdLoss::default();
            result.loss = loss * found.share;
            result.clip_fraction = clip_mean(held);
            result.clip_fraction_lower = clip_mean(held_below);
            result.kl = clip_mean(kl);
            result.abs_loss = mean(size);
            (result.loss_min, result.loss_max) = done.get(&range);
            result
        });
        Ok(LossResult { grad: found.grad, loss })
    }

    /// The core's [`ref_kl`](tokenwise::loss::ref_kl) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn ref_kl(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RefKlColumns<'_>,
        config: &RefKlConfig<'_>,
    ) -> Result<LossResult<RefKlLoss>, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        input.ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        if let Some(weights) = &input.weights {
            weights.check_len("weights", batch.tokens())?;
        }
        check_config(|one, grad| {
            let plain = RefKlConfig { aggregate: Default::default(), ..*config };
            tokenwise::loss::ref_kl(one, RefKlInput::new(&[0.0], &[0.0], &[0.0]), &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let inputs = [&input.log_probs, &input.old_log_probs, &input.ref_log_probs].map(Some);
        let settings = [config.fall, config.drift].map(bits);
        let found = self.weighed(&REF_KL, batch, &inputs, input.weights.as_ref(), weights, &settings)?;
        let kept = batch.host().kept() as f64;
        let loss = Pending::new(move |done| {
            let [loss, ref_kl, fallen, of_fallen, of_kept] = done.sums(found.sums);
            let mean = |sum: f64, count: f64| if count == 0.0 { 0.0 } else { sum / count };
            let mut result = RefKlLoss::default();
            result.loss = loss * found.share;
            result.ref_kl = mean(ref_kl, kept);
            result.fallen = mean(fallen, kept);
            result.mismatch_fallen = mean(of_fallen, fallen);
            result.mismatch_kept = mean(of_kept, kept - fallen);
            result
        });
        Ok(LossResult { grad: found.grad, loss })
    }

    /// The core's [`iw_opd`](tokenwise::loss::iw_opd) and its gradient.
    ///
    /// The share of the distance that is still to come, `1 − before / total`, is the sum from a token to the end of its
    /// sequence over the sum of the sequence: a recursion from the last token to the first.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn iw_opd(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &IwOpdColumns<'_>,
        config: &IwOpdConfig<'_>,
    ) -> Result<LossResult<IwOpdLoss>, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        input.teacher_log_probs.check_len("teacher_log_probs", batch.tokens())?;
        check_config(|one, grad| {
            let plain = IwOpdConfig { aggregate: Default::default(), ..*config };
            let input = IwOpdInput { log_probs: &[0.0], old_log_probs: &[0.0], teacher_log_probs: &[0.0] };
            tokenwise::loss::iw_opd(one, input, &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let [old, teacher] = self.columns([&input.old_log_probs, &input.teacher_log_probs])?;
        let ([advantages, sizes], _) = self.tokens(&IW_OPD_ADVANTAGES, batch, &[Some(&old), Some(&teacher)], &[])?;
        let totals = self.fold(Fold::Sum, batch, &sizes)?;
        let ends = vec![0.0; batch.host().sequences()];
        let sum = ReturnsConfig { gamma: 1.0, ..Default::default() };
        let rests = self.discounted_returns(batch, &sizes.into(), &Input::Host(&ends), &sum)?;
        let settings = [config.gamma, config.epsilon].map(bits);
        let ([ratios], _) = self.tokens(&IW_OPD_WEIGHTS, batch, &[Some(&rests), Some(&totals)], &settings)?;
        let range = self.extremes(batch, &ratios)?;
        let (advantages, ratios) = (Input::Device(advantages), Input::Device(ratios));
        let inputs = [&input.log_probs, &advantages, &ratios].map(Some);
        let found = self.weighed(&IW_OPD, batch, &inputs, None, weights, &[])?;
        let mean = mean_over(batch, Divisor::Count);
        let loss = Pending::new(move |done| {
            let [loss, weighted, size, ratio] = done.sums(found.sums);
            let mut result = IwOpdLoss::default();
            result.loss = loss * found.share;
            result.mean_advantage = mean(weighted);
            result.mean_abs_advantage = mean(size);
            result.mean_weight = mean(ratio);
            (result.min_weight, result.max_weight) = done.get(&range);
            result
        });
        Ok(LossResult { grad: found.grad, loss })
    }

    /// The smallest and the largest number of the kept tokens; 0 without any.
    fn extremes(&mut self, batch: &GpuBatch<'_>, tokens: &Column) -> Result<Pending<(f64, f64)>, GpuError> {
        let (least, most) = (self.fold(Fold::Min, &All(batch), tokens)?, self.fold(Fold::Max, &All(batch), tokens)?);
        let (least, most) = (self.download(&least), self.download(&most));
        Ok(Pending::new(move |done| {
            let [least, most] =
                [least, most].map(|download| done.floats(download).first().map_or(0.0, |&number| number.into()));
            (least, most)
        }))
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![opd_loss, ref_kl, iw_opd];

fn opd_loss(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<OpdLossConfig<'_>>()?;
    let input = OpdLossColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        teacher_log_probs: real(call, "teacher_log_probs")?,
        weights: optional(call, "weights")?,
    };
    let result = recording.opd_loss(&batch(call)?, &input, &config)?;
    Ok(named(result, |result| {
        vec![
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
            ("abs_loss", result.abs_loss),
            ("loss_min", result.loss_min),
            ("loss_max", result.loss_max),
        ]
    }))
}

fn ref_kl(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<RefKlConfig<'_>>()?;
    let input = RefKlColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        ref_log_probs: real(call, "ref_log_probs")?,
        weights: optional(call, "weights")?,
    };
    let result = recording.ref_kl(&batch(call)?, &input, &config)?;
    Ok(named(result, |result| {
        vec![
            ("loss", result.loss),
            ("ref_kl", result.ref_kl),
            ("fallen", result.fallen),
            ("mismatch_fallen", result.mismatch_fallen),
            ("mismatch_kept", result.mismatch_kept),
        ]
    }))
}

fn iw_opd(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<IwOpdConfig<'_>>()?;
    let input = IwOpdColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        teacher_log_probs: real(call, "teacher_log_probs")?,
    };
    let result = recording.iw_opd(&batch(call)?, &input, &config)?;
    Ok(named(result, |result| {
        vec![
            ("loss", result.loss),
            ("mean_advantage", result.mean_advantage),
            ("mean_abs_advantage", result.mean_abs_advantage),
            ("mean_weight", result.mean_weight),
            ("min_weight", result.min_weight),
            ("max_weight", result.max_weight),
        ]
    }))
}
