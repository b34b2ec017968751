use tokenwise::rollout::{
    self, BatchNormalize, Criterion, CriterionMetrics, RejectionOption, RolloutConfig, RolloutInput, RolloutLevel,
    WeightBound,
};

use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

/// Both sets of log-probabilities.
pub(super) fn log_probs<R: Number>(case: &Case<'_>) -> Result<[Vec<R>; 2], Failure> {
    Ok([case.tokens("old_log_probs")?, case.tokens("rollout_log_probs")?])
}

pub(super) fn input<R>([old_log_probs, rollout_log_probs]: &[Vec<R>; 2]) -> RolloutInput<'_, R> {
    RolloutInput { old_log_probs, rollout_log_probs }
}

/// `threshold` is verl's own spelling; else `upper` alone truncates, `lower` and `upper` mask or, by `mode`, clamp.
fn weight_bound(case: &Case<'_>) -> Result<WeightBound, Failure> {
    if case.param("threshold").is_some() {
        return Ok(rollout::parse_weight_bound(&case.spelled("threshold")?)?);
    }
    let upper = case.number("upper", Some(2.0))?;
    let lower = case.number("lower", Some(f64::NAN))?;
    let mode = case.text("mode", if lower.is_nan() { "truncate" } else { "mask" })?;
    Ok(match mode {
        "truncate" if lower.is_nan() => WeightBound::Truncate { upper },
        "truncate" => WeightBound::Clamp { lower, upper },
        "mask" => WeightBound::Zero { lower: if lower.is_nan() { 0.0 } else { lower }, upper },
        _ => return Err(Failure::Unfit(format!("mode: expected truncate or mask, got \"{mode}\""))),
    })
}

pub(super) fn rollout_is<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let bound = weight_bound(case)?;
    let config = RolloutConfig {
        level: match case.text("level", "token")? {
            "token" => RolloutLevel::Token,
            "sequence" => RolloutLevel::Sequence,
            "geometric" => RolloutLevel::Geometric,
            other => {
                return Err(Failure::Unfit(format!("level: expected token, sequence or geometric, got \"{other}\"")))
            }
        },
        bound,
        normalize: if case.flag("batch_normalize", false)? { BatchNormalize::ByLevel } else { BatchNormalize::Off },
        ..case.conventions.rollout()
    };
    let mut weights = vec![R::zero(); case.rows * case.cols];
    rollout::rollout_weights(&case.batch()?, input(&log_probs), &config, &mut weights)?;
    // the frameworks do both in one function, which therefore refuses what has no metrics
    let metrics = rollout::rollout_weight_metrics(&case.batch()?, input(&log_probs), &config)?;
    let mut outputs = vec![("weights", Output::tokens(weights))];
    named(&mut outputs, metrics.entries());
    Ok(outputs)
}

pub(super) fn rollout_rejection<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let mut criteria = [Criterion::default(); RejectionOption::ALL.len()];
    let (options, thresholds) = (case.text("options", "")?, case.spelled("thresholds")?);
    let count = rollout::parse_rejection(options, &thresholds, &mut criteria)?;
    let config = case.conventions.rejection(&criteria[..count]);
    let mut keep = vec![false; case.rows * case.cols];
    rollout::rollout_rejection(&case.batch()?, input(&log_probs), &config, &mut keep)?;
    // as above
    let mut metrics = vec![CriterionMetrics::default(); count];
    let totals = rollout::rollout_rejection_metrics(&case.batch()?, input(&log_probs), &config, &mut metrics)?;
    let mask = keep.into_iter().map(|keep| f64::from(u8::from(keep))).collect();
    let mut outputs = vec![("mask", Output::Tokens(mask))];
    named(&mut outputs, totals.entries().into_iter());
    named(&mut outputs, metrics.iter().flat_map(CriterionMetrics::entries));
    Ok(outputs)
}

pub(super) fn rollout_metrics<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let mismatch = rollout::rollout_mismatch(&case.batch()?, input(&log_probs), case.conventions.divisor)?;
    let mut outputs = Vec::new();
    named(&mut outputs, mismatch.entries().into_iter());
    Ok(outputs)
}

/// Every number under its key, with and without the framework's prefix.
fn named(outputs: &mut crate::golden::compare::Outputs, entries: impl Iterator<Item = (&'static str, f64)>) {
    for (key, value) in entries {
        outputs.push((key, Output::Scalar(value)));
        outputs.push((key.trim_start_matches("rollout_corr/"), Output::Scalar(value)));
    }
}
