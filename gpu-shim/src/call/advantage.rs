//! Runners of credit and off-policy targets.

use super::{batch, column, gae_input, optional, real, Answer, Request};
use crate::{
    column::Column,
    credit::{AttentionColumns, RemaxColumns, TeacherColumns},
    error::GpuError,
    recording::Recording,
    trace::PolicyColumns,
};

type Answered = Result<Answer, GpuError>;

fn estimates((advantages, returns): (Column, Column)) -> Answered {
    Ok(Answer { columns: vec![("advantages", advantages), ("returns", returns)], numbers: None })
}

pub(crate) fn uniform_credit(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("out", recording.uniform_credit(&batch(call)?, &real(call, "scores")?)?))
}

pub(crate) fn last_k_credit(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("out", recording.last_k_credit(&batch(call)?, &real(call, "scores")?, &call.config()?)?))
}

pub(crate) fn attention_credit(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let input = AttentionColumns { scores: real(call, "scores")?, weights: real(call, "weights")? };
    Ok(column("out", recording.attention_credit(&batch(call)?, &input)?))
}

pub(crate) fn monte_carlo_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    estimates(recording.monte_carlo_advantage(&batch(call)?, &gae_input(call)?, &call.config()?)?)
}

pub(crate) fn gae_decoupled(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    estimates(recording.gae_decoupled(&batch(call)?, &gae_input(call)?, &call.config()?)?)
}

pub(crate) fn remax(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let input = RemaxColumns { rewards: real(call, "rewards")?, baselines: real(call, "baselines")? };
    estimates(recording.remax(&batch(call)?, &input)?)
}

pub(crate) fn reinforce_plus_plus(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (rewards, bootstrap) = (real(call, "rewards")?, real(call, "bootstrap")?);
    estimates(recording.reinforce_plus_plus(&batch(call)?, &rewards, &bootstrap, &call.config()?)?)
}

fn teacher<'a>(call: &Request<'_, 'a>) -> Result<TeacherColumns<'a>, GpuError> {
    Ok(TeacherColumns {
        teacher_log_probs: real(call, "teacher_log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
    })
}

pub(crate) fn opd_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let advantages = optional(call, "advantages")?;
    let out = recording.opd_advantage(&batch(call)?, &teacher(call)?, advantages.as_ref(), &call.config()?)?;
    Ok(column("advantages", out))
}

pub(crate) fn minillm_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("advantages", recording.minillm_advantage(&batch(call)?, &teacher(call)?, &call.config()?)?))
}

fn policy<'a>(call: &Request<'_, 'a>) -> Result<PolicyColumns<'a>, GpuError> {
    Ok(PolicyColumns { log_probs: real(call, "log_probs")?, old_log_probs: real(call, "old_log_probs")? })
}

pub(crate) fn vtrace(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (targets, advantages) = recording.vtrace(&batch(call)?, &gae_input(call)?, &policy(call)?, &call.config()?)?;
    Ok(Answer { columns: vec![("targets", targets), ("advantages", advantages)], numbers: None })
}

pub(crate) fn retrace(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let actions = real(call, "action_values")?;
    let targets = recording.retrace(&batch(call)?, &gae_input(call)?, &actions, &policy(call)?, &call.config()?)?;
    Ok(column("targets", targets))
}

pub(crate) fn puffer_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let ratios = real(call, "ratios")?;
    let out = recording.puffer_advantage(&batch(call)?, &gae_input(call)?, &ratios, &call.config()?)?;
    Ok(column("advantages", out))
}

pub(crate) fn upgo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("returns", recording.upgo(&batch(call)?, &gae_input(call)?)?))
}
