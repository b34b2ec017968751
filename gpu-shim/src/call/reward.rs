//! Runners of the rewards.

use super::{batch, column, numbers, real, Answer, Request};
use crate::{divergence::KlColumns, error::GpuError, recording::Recording, reward::ShapeColumns};

type Answered = Result<Answer, GpuError>;

fn sampled<'a>(call: &Request<'_, 'a>) -> Result<KlColumns<'a>, GpuError> {
    Ok(KlColumns { log_probs: real(call, "old_log_probs")?, ref_log_probs: real(call, "ref_log_probs")? })
}

pub(crate) fn kl_in_reward(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let scores = real(call, "scores")?;
    let (rewards, mean_kl) = recording.kl_in_reward(&batch(call)?, &scores, &sampled(call)?, &call.config()?)?;
    Ok(Answer { columns: vec![("rewards", rewards)], ..numbers(mean_kl, |kl| vec![("mean_kl", kl)]) })
}

pub(crate) fn kl_in_scores(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let scores = real(call, "scores")?;
    Ok(column("out", recording.kl_in_scores(&batch(call)?, &scores, &sampled(call)?, &call.config()?)?))
}

pub(crate) fn clipped_rewards(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let input = ShapeColumns { scores: real(call, "scores")?, kl: real(call, "kl")? };
    Ok(column("rewards", recording.clipped_rewards(&batch(call)?, &input, &call.config()?)?))
}
