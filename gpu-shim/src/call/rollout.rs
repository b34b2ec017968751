//! Runners of the rollout corrections.

use tokenwise::rollout::{Criterion, CriterionMetrics, RejectionConfig};

use super::{batch, column, numbers, real, Answer, Request};
use crate::{error::GpuError, metric::RatioColumns, recording::Recording, rollout::RolloutColumns};

type Answered = Result<Answer, GpuError>;

fn input<'a>(call: &Request<'_, 'a>) -> Result<RolloutColumns<'a>, GpuError> {
    Ok(RolloutColumns {
        old_log_probs: real(call, "old_log_probs")?,
        rollout_log_probs: real(call, "rollout_log_probs")?,
    })
}

pub(crate) fn rollout_weights(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (weights, factor) = recording.rollout_weights(&batch(call)?, &input(call)?, &call.config()?)?;
    Ok(Answer { columns: vec![("weights", weights)], ..numbers(factor, |factor| vec![("factor", factor)]) })
}

pub(crate) fn rollout_weight_metrics(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let metrics = recording.rollout_weight_metrics(&batch(call)?, &input(call)?, &call.config()?)?;
    Ok(numbers(metrics, |metrics| metrics.entries().collect()))
}

pub(crate) fn rollout_mismatch(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let metrics = recording.rollout_mismatch(&batch(call)?, &input(call)?, &call.config()?)?;
    Ok(numbers(metrics, |metrics| metrics.entries().to_vec()))
}

pub(crate) fn probability_difference(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let metrics = recording.probability_difference(&batch(call)?, &input(call)?)?;
    Ok(numbers(metrics, |metrics| metrics.entries().to_vec()))
}

/// Calls `run` with the config of a rejection, which borrows its criteria.
fn with_rejection<T>(
    call: &Request<'_, '_>,
    run: impl FnOnce(&RejectionConfig<'_>) -> Result<T, GpuError>,
) -> Result<T, GpuError> {
    let mut settings = call.config.clone();
    let criteria: Vec<Criterion> = match settings.take("criteria") {
        Some(criteria) => criteria.read("criteria").map_err(tokenwise_catalogue::Refusal::from)?,
        None => Vec::new(),
    };
    let config: RejectionConfig<'_> = settings.read("config").map_err(tokenwise_catalogue::Refusal::from)?;
    run(&RejectionConfig { criteria: &criteria, ..config })
}

pub(crate) fn rollout_rejection(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (batch, input) = (batch(call)?, input(call)?);
    let keep = with_rejection(call, |config| recording.rollout_rejection(&batch, &input, config))?;
    Ok(column("keep", keep))
}

pub(crate) fn rollout_rejection_metrics(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (batch, input) = (batch(call)?, input(call)?);
    let metrics = with_rejection(call, |config| recording.rollout_rejection_metrics(&batch, &input, config))?;
    Ok(numbers(metrics, |(criteria, totals)| {
        criteria.iter().flat_map(CriterionMetrics::entries).chain(totals.entries()).collect()
    }))
}

pub(crate) fn rollout_gate(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let (weights, report) = recording.rollout_gate(&batch(call)?, &input(call)?, &call.config()?)?;
    let report = numbers(report, |report| vec![("filtered", report.filtered), ("kl", report.kl)]);
    Ok(Answer { columns: vec![("weights", weights)], ..report })
}

pub(crate) fn kl_mask(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("keep", recording.kl_mask(&batch(call)?, &input(call)?, &call.config()?)?))
}

pub(crate) fn sequence_veto(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    Ok(column("keep", recording.sequence_veto(&batch(call)?, &input(call)?, &call.config()?)?))
}

pub(crate) fn off_policy_sequence_mask(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Answered {
    let input = RatioColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        advantages: real(call, "advantages")?,
    };
    Ok(column("keep", recording.off_policy_sequence_mask(&batch(call)?, &input, &call.config()?)?))
}
