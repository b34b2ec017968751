//! The calls by name.

use tokenwise::{metric::Analysis, CoMoments};

use super::{AnalysisColumns, ExplainedVarianceColumns, PairColumns, RatioColumns, VarianceProxyColumns};
use crate::{
    call::{batch, column, kl_input, numbers, optional, real, runners, Answer, Request, Runner},
    error::GpuError,
    recording::{Pending, Recording},
};

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![
    mean,
    variance,
    analysis,
    analysis_sums,
    co_moments,
    correlation,
    explained_variance,
    kl_means,
    clip_fractions,
    effective_sample_size,
    row_means,
    row_normalize,
    variance_proxy
];

fn pair<'a>(call: &Request<'_, 'a>) -> Result<PairColumns<'a>, GpuError> {
    Ok(PairColumns { x: real(call, "x")?, y: real(call, "y")? })
}

fn analysis_of(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Pending<Analysis>, GpuError> {
    let input = AnalysisColumns {
        old_log_probs: real(call, "old_log_probs")?,
        advantages: real(call, "advantages")?,
        rewards: real(call, "rewards")?,
    };
    recording.analysis(&batch(call)?, &input)
}

fn mean(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let mean = recording.mean(&batch(call)?, &real(call, "values")?, &call.config()?)?;
    Ok(numbers(mean, |mean| vec![("mean", mean)]))
}

fn variance(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let variance = recording.variance(&batch(call)?, &real(call, "values")?, &call.config()?)?;
    Ok(numbers(variance, |variance| vec![("variance", variance)]))
}

fn analysis(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(numbers(analysis_of(recording, call)?, |analysis| analysis.entries().to_vec()))
}

fn analysis_sums(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(numbers(analysis_of(recording, call)?, |analysis| {
        let moments = analysis.moments;
        vec![
            ("moments.count", moments.count as f64),
            ("moments.mean_x", moments.mean_x),
            ("moments.mean_y", moments.mean_y),
            ("moments.m2_x", moments.m2_x),
            ("moments.m2_y", moments.m2_y),
            ("moments.co_moment", moments.co_moment),
            ("entropy_sum", analysis.entropy_sum),
            ("wh_sum", analysis.wh_sum),
            ("reward_sum", analysis.reward_sum),
            ("sequences", analysis.sequences as f64),
        ]
    }))
}

fn co_moments(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let moments = recording.co_moments(&batch(call)?, &pair(call)?)?;
    Ok(numbers(moments, |moments: CoMoments| {
        vec![
            ("count", moments.count as f64),
            ("mean_x", moments.mean_x),
            ("mean_y", moments.mean_y),
            ("m2_x", moments.m2_x),
            ("m2_y", moments.m2_y),
            ("co_moment", moments.co_moment),
        ]
    }))
}

fn correlation(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let correlation = recording.correlation(&batch(call)?, &pair(call)?)?;
    Ok(numbers(correlation, |correlation| vec![("correlation", correlation)]))
}

fn explained_variance(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = ExplainedVarianceColumns { values: real(call, "values")?, returns: real(call, "returns")? };
    let share = recording.explained_variance(&batch(call)?, &input, &call.config()?)?;
    Ok(numbers(share, |share| vec![("explained_variance", share)]))
}

fn kl_means(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let means = recording.kl_means(&batch(call)?, &kl_input(call)?, &call.config()?)?;
    Ok(numbers(means, |means| vec![("k1", means.k1), ("abs", means.abs), ("k2", means.k2), ("k3", means.k3)]))
}

fn clip_fractions(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = RatioColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        advantages: real(call, "advantages")?,
    };
    let shares = recording.clip_fractions(&batch(call)?, &input, &call.config()?)?;
    Ok(numbers(shares, |shares| {
        vec![("clipped", shares.clipped), ("low", shares.low), ("high", shares.high), ("dual", shares.dual)]
    }))
}

fn effective_sample_size(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let size = recording.effective_sample_size(&batch(call)?, &real(call, "weights")?)?;
    Ok(numbers(size, |size| vec![("effective_sample_size", size)]))
}

fn row_means(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    call.config::<tokenwise::MeanConfig>()?;
    Ok(column("out", recording.row_means(&batch(call)?, &real(call, "values")?)?))
}

fn row_normalize(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.row_normalize(&batch(call)?, &real(call, "values")?, &call.config()?)?))
}

fn variance_proxy(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = VarianceProxyColumns {
        old_log_probs: real(call, "old_log_probs")?,
        sum_pi_squared: real(call, "sum_pi_squared")?,
        advantages: real(call, "advantages")?,
        weights: optional(call, "weights")?,
    };
    let proxy = recording.variance_proxy(&batch(call)?, &input, &call.config()?)?;
    Ok(numbers(proxy, |proxy| proxy.entries().to_vec()))
}
