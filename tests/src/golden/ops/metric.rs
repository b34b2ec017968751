use tokenwise::{
    divergence::KlInput,
    metric::{
        self, AnalysisInput, ClipConfig, ExplainedVarianceConfig, ExplainedVarianceInput, PairInput, RatioInput,
        VarianceProxyInput,
    },
    Error, Spread,
};

use super::loss::dual_clip;
use crate::golden::{
    case::{Case, Number, Ran},
    compare::{Output, Outputs},
};

fn value(value: f64) -> Outputs {
    vec![("value", Output::Scalar(value))]
}

/// Named means; those of an empty mask are what the profile makes of them.
fn means<const N: usize>(case: &Case<'_>, names: [&'static str; N], means: Result<[f64; N], Error>) -> Ran {
    let means = match (means, case.conventions.empty_mean.value()) {
        (Err(Error::EmptyMask), Some(empty)) => [empty; N],
        (means, _) => means?,
    };
    Ok(names.into_iter().zip(means.map(Output::Scalar)).collect())
}

pub(super) fn masked_mean<R: Number>(case: &Case<'_>) -> Ran {
    let x = case.tokens::<R>("x")?;
    means(case, ["value"], metric::mean(&case.batch()?, &x, case.conventions.divisor).map(|mean| [mean]))
}

pub(super) fn masked_var<R: Number>(case: &Case<'_>) -> Ran {
    let x = case.tokens::<R>("x")?;
    Ok(value(metric::variance(&case.batch()?, &x, Spread::Sample, case.conventions.divisor)?))
}

pub(super) fn correlation<R: Number>(case: &Case<'_>) -> Ran {
    let (x, y) = (case.tokens::<R>("x")?, case.tokens("y")?);
    Ok(value(metric::correlation(&case.batch()?, PairInput { x: &x, y: &y })?))
}

pub(super) fn explained_variance<R: Number>(case: &Case<'_>) -> Ran {
    let (values, returns) = (case.tokens::<R>("values")?, case.tokens("returns")?);
    let input = ExplainedVarianceInput { values: &values, returns: &returns };
    Ok(value(metric::explained_variance(&case.batch()?, input, &ExplainedVarianceConfig::default())?))
}

pub(super) fn kl_means<R: Number>(case: &Case<'_>) -> Ran {
    let (log_probs, ref_log_probs) = (case.tokens::<R>("log_probs")?, case.tokens("ref_log_probs")?);
    let input = KlInput { log_probs: &log_probs, ref_log_probs: &ref_log_probs };
    let result = metric::kl_means(&case.batch()?, input, case.conventions.divisor);
    means(case, ["k1", "abs", "k2", "k3"], result.map(|m| [m.k1, m.abs, m.k2, m.k3]))
}

pub(super) fn clip_fractions<R: Number>(case: &Case<'_>) -> Ran {
    let (log_probs, old_log_probs) = (case.tokens::<R>("log_probs")?, case.tokens("old_log_probs")?);
    let advantages = case.tokens("advantages")?;
    let config = ClipConfig {
        clip_low: case.number("clip_low", Some(0.2))?,
        clip_high: case.number("clip_high", Some(0.2))?,
        dual_clip: dual_clip(case)?,
        ..case.conventions.clip_fractions()
    };
    let input = RatioInput { log_probs: &log_probs, old_log_probs: &old_log_probs, advantages: &advantages };
    let result = metric::clip_fractions(&case.batch()?, input, &config);
    means(case, ["clipped", "low", "high", "dual"], result.map(|s| [s.clipped, s.low, s.high, s.dual]))
}

pub(super) fn analysis<R: Number>(case: &Case<'_>) -> Ran {
    let (old_log_probs, advantages) = (case.tokens::<R>("old_log_probs")?, case.tokens("advantages")?);
    let rewards = case.tokens("rewards")?;
    let input = AnalysisInput { old_log_probs: &old_log_probs, advantages: &advantages, rewards: &rewards };
    Ok(metric::analysis(&case.batch()?, input)?.entries().map(|(key, value)| (key, Output::Scalar(value))).into())
}

/// One number per sequence, or each sequence by itself.
pub(super) fn rows<R: Number>(case: &Case<'_>) -> Ran {
    let (x, batch) = (case.tokens::<R>("x")?, case.batch()?);
    let mut out = vec![R::zero(); if case.op == "row_normalize" { x.len() } else { case.rows }];
    match case.op {
        "row_sums" => metric::row_sums(&batch, &x, &mut out)?,
        "row_means" => metric::row_means(&batch, &x, case.conventions.divisor, &mut out)?,
        _ => {
            metric::row_normalize(&batch, &x, case.number("floor", Some(1e-8))?, &mut out)?;
            return Ok(vec![("out", Output::tokens(out))]);
        }
    }
    Ok(vec![("out", Output::entries(out))])
}

pub(super) fn quantile<R: Number>(case: &Case<'_>) -> Ran {
    Ok(value(metric::quantile(&case.batch()?, &case.tokens::<R>("x")?, case.number("level", None)?)?))
}

pub(super) fn effective_sample_size<R: Number>(case: &Case<'_>) -> Ran {
    Ok(value(metric::effective_sample_size(&case.batch()?, &case.tokens::<R>("weights")?)?))
}

pub(super) fn variance_proxy<R: Number>(case: &Case<'_>) -> Ran {
    let (old_log_probs, sum_pi_squared) = (case.tokens::<R>("old_log_probs")?, case.tokens("sum_pi_squared")?);
    let advantages = case.tokens("advantages")?;
    let weights = if case.has_input("rollout_weights") { Some(case.tokens("rollout_weights")?) } else { None };
    let input = VarianceProxyInput {
        old_log_probs: &old_log_probs,
        sum_pi_squared: &sum_pi_squared,
        advantages: &advantages,
        weights: weights.as_deref(),
    };
    let norm = case.number("gradient_norm", None)?;
    let proxy = metric::variance_proxy(&case.batch()?, input, norm, case.conventions.divisor)?;
    Ok(proxy.entries().map(|(key, value)| (key, Output::Scalar(value))).into())
}
