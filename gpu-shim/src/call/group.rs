//! Runners of the group advantages.

use super::{batch, column, real, Answer, Request};
use crate::{batch::GpuGroups, column::Input, error::GpuError, recording::Recording};

type Answered = Result<Answer, GpuError>;

fn groups<'a>(call: &Request<'_, 'a>) -> Result<GpuGroups<'a>, GpuError> {
    Ok(GpuGroups::new(call.groups()?))
}

pub(crate) fn group_relative(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("out", recording.group_relative(&groups(call)?, &real(call, "scores")?, &call.config()?)?))
}

pub(crate) fn gpg_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("out", recording.gpg_advantage(&groups(call)?, &real(call, "scores")?, &call.config()?)?))
}

pub(crate) fn max_rl(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("out", recording.max_rl(&groups(call)?, &real(call, "scores")?, &call.config()?)?))
}

pub(crate) fn length_weighted_baseline(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (batch, groups, scores) = (batch(call)?, groups(call)?, real(call, "scores")?);
    Ok(column("out", recording.length_weighted_baseline(&batch, &groups, &scores, &call.config()?)?))
}

pub(crate) fn gdpo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (batch, groups, weights) = (batch(call)?, groups(call)?, call.inputs.double("weights")?);
    if call.resident("sources").is_some() {
        return Err(GpuError::Unsupported("the sources of gdpo are read from the host"));
    }
    let sources = call.real("sources")?.chunks(groups.host().sequences().max(1));
    let sources: Vec<_> = sources.map(Input::Host).collect();
    Ok(column("advantages", recording.gdpo(&batch, &groups, &sources, weights, &call.config()?)?))
}

pub(crate) fn reinforce_plus_plus_baseline(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (batch, groups, scores) = (batch(call)?, groups(call)?, real(call, "scores")?);
    let out = recording.reinforce_plus_plus_baseline(&batch, &groups, &scores, &call.config()?)?;
    Ok(column("advantages", out))
}
