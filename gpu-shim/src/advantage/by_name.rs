//! The calls by name.

use tokenwise::Moments;

use crate::{
    batch::GpuGroups,
    call::{batch, column, estimates, gae_input, numbers, real, runners, Answer, Request, Runner},
    error::GpuError,
    fold::Fold,
    recording::Recording,
};

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![discounted_returns: GAE, gae: GAE, whiten, td_lambda: GAE, broadcast, sequence_sums: SUM, leave_one_out, moments];

fn discounted_returns(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (rewards, bootstrap) = (real(call, "rewards")?, real(call, "bootstrap")?);
    Ok(column("returns", recording.discounted_returns(&batch(call)?, &rewards, &bootstrap, &call.config()?)?))
}

fn gae(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(estimates(recording.gae(&batch(call)?, &gae_input(call)?, &call.config()?)?))
}

fn whiten(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.whiten(&batch(call)?, &real(call, "values")?, &call.config()?)?))
}

fn td_lambda(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("returns", recording.td_lambda(&batch(call)?, &gae_input(call)?, &call.config()?)?))
}

fn broadcast(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.broadcast(&batch(call)?, &real(call, "values")?)?))
}

fn sequence_sums(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.fold_sequences(Fold::Sum, &batch(call)?, &real(call, "rewards")?)?))
}

fn leave_one_out(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let groups = GpuGroups::new(call.groups()?);
    Ok(column("out", recording.leave_one_out(&groups, &real(call, "scores")?, &call.config()?)?))
}

fn moments(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let moments = recording.moments(&batch(call)?, &real(call, "values")?)?;
    Ok(numbers(moments, |moments: Moments| {
        vec![("count", moments.count as f64), ("mean", moments.mean), ("m2", moments.m2)]
    }))
}
