use tokenwise::rollout::{
    self, BatchNormalize, Criterion, CriterionMetrics, RejectionOption, RolloutConfig, RolloutInput, RolloutLevel,
    WeightBound,
};

use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

/// Both sets of log-probabilities.
fn log_probs<R: Number>(case: &Case<'_>) -> Result<[Vec<R>; 2], Failure> {
    Ok([case.tokens("old_log_probs")?, case.tokens("rollout_log_probs")?])
}

fn input<R>([old_log_probs, rollout_log_probs]: &[Vec<R>; 2]) -> RolloutInput<'_, R> {
    RolloutInput { old_log_probs, rollout_log_probs }
}

pub(super) fn rollout_is<R: Number>(case: &Case<'_>) -> Ran {
    let log_probs = log_probs::<R>(case)?;
    let upper = case.number("upper", Some(2.0))?;
    let bound = match case.param("lower") {
        None => WeightBound::Truncate { upper },
        Some(value) if value.is_null() => WeightBound::Truncate { upper },
        Some(_) => WeightBound::Zero { lower: case.number("lower", None)?, upper },
    };
    let config = RolloutConfig {
        level: match case.text("level", "token")? {
            "token" => RolloutLevel::Token,
            "sequence" => RolloutLevel::Sequence,
            other => return Err(Failure::Malformed(format!("level: expected token or sequence, got \"{other}\""))),
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
    let (options, thresholds) = (case.text("options", "")?, case.text("thresholds", "")?);
    let count = rollout::parse_rejection(options, thresholds, &mut criteria)?;
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
