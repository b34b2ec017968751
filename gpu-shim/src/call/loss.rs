//! The losses by their names.

use tokenwise::loss::*;
use tokenwise_catalogue::find;

use super::{batch, column, kl_input, optional, policy_input, real, Answer, Request};
use crate::{
    batch::GpuGroups,
    column::Input,
    error::GpuError,
    loss::{
        ClipCovColumns, DualGameColumns, IwOpdColumns, LossResult, OpdLossColumns, PolicyLossResult,
        PositiveNllColumns, RefKlColumns, ToprColumns, ValueLossColumns,
    },
    recording::{Pending, Recording},
    weight::{TokenWeightColumns, WeightColumn},
};

/// The gradient of a policy loss, and those of its numbers that the formula returns.
pub(crate) fn answer(formula: &'static str, result: PolicyLossResult) -> Answer {
    let PolicyLossResult { grad, loss } = result;
    let returned = find(formula).map_or(&[][..], |entry| entry.numbers);
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        let numbers = [
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
        ];
        numbers.into_iter().filter(|(name, _)| returned.contains(name)).collect()
    });
    Answer { columns: vec![("grad", grad)], numbers: Some(numbers) }
}

/// The gradient of a loss that returns nothing else.
fn plain_answer(result: LossResult<f64>) -> Answer {
    let LossResult { grad, loss } = result;
    let numbers = Pending::new(move |done| vec![("loss", done.get(&loss))]);
    Answer { columns: vec![("grad", grad)], numbers: Some(numbers) }
}

pub(crate) fn clip_cov(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<ClipCovConfig<'_>>()?;
    let selected: Vec<f32> = call.inputs.flag("selected")?.iter().map(|&selected| f32::from(selected)).collect();
    let input = ClipCovColumns { policy: policy_input(call)?, selected: Input::Host(&selected) };
    Ok(answer("clip_cov", recording.clip_cov(&batch(call)?, &input, &config)?))
}

pub(crate) fn topr(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<ToprConfig<'_>>()?;
    let input = ToprColumns { policy: policy_input(call)?, scores: real(call, "scores")? };
    Ok(plain_answer(recording.topr(&batch(call)?, &input, &config)?))
}

pub(crate) fn dual_game(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<DualGameConfig<'_>>()?;
    let input = DualGameColumns {
        policy: policy_input(call)?,
        ref_log_probs: optional(call, "ref_log_probs")?,
        weight: WeightColumn::of(call)?,
    };
    let LossResult { grad, loss } = recording.dual_game(&batch(call)?, &input, &config)?;
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        vec![
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_upper", result.clip_fraction_upper),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
        ]
    });
    Ok(Answer { columns: vec![("grad", grad)], numbers: Some(numbers) })
}

pub(crate) fn gspo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<GspoConfig<'_>>()?;
    Ok(answer("gspo", recording.gspo(&batch(call)?, &policy_input(call)?, &config)?))
}

pub(crate) fn luspo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(answer("luspo", recording.luspo(&batch(call)?, &policy_input(call)?, &call.config()?)?))
}

pub(crate) fn gmpo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(answer("gmpo", recording.gmpo(&batch(call)?, &policy_input(call)?, &call.config()?)?))
}

pub(crate) fn vespo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<VespoConfig<'_>>()?;
    let LossResult { grad, loss } = recording.vespo(&batch(call)?, &policy_input(call)?, &config)?;
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        vec![("loss", result.loss), ("phi_mean", result.phi_mean)]
    });
    Ok(Answer { columns: vec![("grad", grad)], numbers: Some(numbers) })
}

pub(crate) fn gvpo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, groups) = (batch(call)?, GpuGroups::new(call.groups()?));
    Ok(plain_answer(recording.gvpo(&batch, &groups, &policy_input(call)?, &call.config()?)?))
}

pub(crate) fn positive_nll(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = PositiveNllColumns { log_probs: real(call, "log_probs")?, scores: real(call, "scores")? };
    Ok(plain_answer(recording.positive_nll(&batch(call)?, &input, &call.config()?)?))
}

pub(crate) fn aggregate(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<Aggregate<'_>>()?;
    let LossResult { grad, loss } = recording.aggregate(&batch(call)?, &real(call, "losses")?, &config)?;
    let numbers = Pending::new(move |done| vec![("loss", done.get(&loss))]);
    Ok(Answer { columns: vec![("weights", grad)], numbers: Some(numbers) })
}

pub(crate) fn entropy_bonus(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<EntropyBonusConfig<'_>>()?;
    Ok(plain_answer(recording.entropy_bonus(&batch(call)?, &real(call, "entropy")?, &config)?))
}

pub(crate) fn value_loss(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<ValueConfig<'_>>()?;
    let input = ValueLossColumns {
        predictions: real(call, "predictions")?,
        values: real(call, "values")?,
        returns: real(call, "returns")?,
    };
    let LossResult { grad, loss } = recording.value_loss(&batch(call)?, &input, &config)?;
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        vec![("loss", result.loss), ("clip_fraction", result.clip_fraction)]
    });
    Ok(Answer { columns: vec![("grad", grad)], numbers: Some(numbers) })
}

pub(crate) fn kl_loss(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<KlLossConfig<'_>>()?;
    let LossResult { grad, loss } = recording.kl_loss(&batch(call)?, &kl_input(call)?, &config)?;
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        vec![("loss", result.loss), ("aggregated", result.aggregated), ("mean", result.mean)]
    });
    Ok(Answer { columns: vec![("grad", grad)], numbers: Some(numbers) })
}

pub(crate) fn opd_loss(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<OpdLossConfig<'_>>()?;
    let input = OpdLossColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        teacher_log_probs: real(call, "teacher_log_probs")?,
        weights: optional(call, "weights")?,
    };
    let LossResult { grad, loss } = recording.opd_loss(&batch(call)?, &input, &config)?;
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        vec![
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
            ("abs_loss", result.abs_loss),
            ("loss_min", result.loss_min),
            ("loss_max", result.loss_max),
        ]
    });
    Ok(Answer { columns: vec![("grad", grad)], numbers: Some(numbers) })
}

pub(crate) fn ref_kl(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<RefKlConfig<'_>>()?;
    let input = RefKlColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        ref_log_probs: real(call, "ref_log_probs")?,
        weights: optional(call, "weights")?,
    };
    let LossResult { grad, loss } = recording.ref_kl(&batch(call)?, &input, &config)?;
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        vec![
            ("loss", result.loss),
            ("ref_kl", result.ref_kl),
            ("fallen", result.fallen),
            ("mismatch_fallen", result.mismatch_fallen),
            ("mismatch_kept", result.mismatch_kept),
        ]
    });
    Ok(Answer { columns: vec![("grad", grad)], numbers: Some(numbers) })
}

pub(crate) fn iw_opd(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<IwOpdConfig<'_>>()?;
    let input = IwOpdColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        teacher_log_probs: real(call, "teacher_log_probs")?,
    };
    let LossResult { grad, loss } = recording.iw_opd(&batch(call)?, &input, &config)?;
    let numbers = Pending::new(move |done| {
        let result = done.get(&loss);
        vec![
            ("loss", result.loss),
            ("mean_advantage", result.mean_advantage),
            ("mean_abs_advantage", result.mean_abs_advantage),
            ("mean_weight", result.mean_weight),
            ("min_weight", result.min_weight),
            ("max_weight", result.max_weight),
        ]
    });
    Ok(Answer { columns: vec![("grad", grad)], numbers: Some(numbers) })
}

pub(crate) fn token_weights(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = TokenWeightColumns {
        log_probs: real(call, "log_probs")?,
        ref_log_probs: optional(call, "ref_log_probs")?,
        advantages: real(call, "advantages")?,
        weight: WeightColumn::of(call)?,
    };
    Ok(column("weights", recording.token_weights(&batch(call)?, &input)?))
}

pub(crate) fn advantage_jump(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.advantage_jump(&batch(call)?, &real(call, "advantages")?)?))
}
