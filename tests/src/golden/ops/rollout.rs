//! The correction for a sampler that differs from the trainer.

use tokenwise::rollout::{
    self, BatchNormalize, Criterion, GateConfig, RejectionConfig, RejectionOption, RolloutConfig, WeightBound,
};

use super::MASK;
use crate::golden::{
    case::{word, Case, Failure},
    step::Step,
};

/// `threshold` is verl's own spelling; else `upper` alone truncates, `lower` and `upper` mask or, by `mode`, clamp.
fn weight_bound(case: &Case<'_>) -> Result<WeightBound, Failure> {
    if case.param("threshold").is_some() {
        return Ok(rollout::parse_weight_bound(&case.spelled("threshold")?)?);
    }
    let upper = case.number("upper", Some(2.0))?;
    let lower = case.number("lower", Some(f64::NAN))?;
    let mode = case.text("mode", if lower.is_nan() { "truncate" } else { "mask" })?;
    word(mode, "mode", |mode| match mode {
        "truncate" if lower.is_nan() => Some(WeightBound::Truncate { upper }),
        "truncate" => Some(WeightBound::Clamp { lower, upper }),
        "mask" => Some(WeightBound::Zero { lower: if lower.is_nan() { 0.0 } else { lower }, upper }),
        _ => None,
    })
}

/// Weights and their metrics: the frameworks compute both in one function, which rejects batches without metrics.
pub(super) fn weights(case: &Case<'_>) -> Result<Vec<Step>, Failure> {
    let normalize = if case.flag("batch_normalize", false)? { BatchNormalize::ByLevel } else { BatchNormalize::Off };
    let config = RolloutConfig { bound: weight_bound(case)?, normalize, ..case.conventions.rollout() };
    let level = case.text("level", "token")?;
    ["rollout_weights", "rollout_weight_metrics"]
        .into_iter()
        .map(|entry| Step::new(entry, &[])?.fixed(config)?.set("level", level))
        .collect()
}

/// The criteria in verl's spelling.
pub(super) fn criteria(case: &Case<'_>) -> Result<Vec<Criterion>, Failure> {
    let mut criteria = vec![Criterion::default(); RejectionOption::ALL.len()];
    let (options, thresholds) = (case.text("options", "")?, case.spelled("thresholds")?);
    let count = rollout::parse_rejection(options, &thresholds, &mut criteria)?;
    criteria.truncate(count);
    Ok(criteria)
}

/// The mask and its metrics, as above.
pub(super) fn rejection(case: &Case<'_>) -> Result<Vec<Step>, Failure> {
    let criteria = criteria(case)?;
    let config = RejectionConfig { divisor: case.conventions.divisor, ..Default::default() };
    ["rollout_rejection", "rollout_rejection_metrics"]
        .into_iter()
        .map(|entry| Step::new(entry, MASK)?.fixed(config)?.set("criteria", &criteria))
        .collect()
}

/// OpenRLHF's gate, with the names it has there.
pub(super) fn gate(case: &Case<'_>) -> Result<Step, Failure> {
    let mut step = Step::new("rollout_gate", &[])?.config(case, GateConfig::default())?;
    for (key, name, usual) in [("statistic", "tv", "total-variation"), ("level", "seq", "sequence")] {
        if case.text(key, "")? == name {
            step = step.set(key, usual)?;
        }
    }
    Ok(step)
}
