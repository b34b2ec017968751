//! Estimators that rlax, AReaL and SkyRL have.

use tokenwise::{
    advantage::{
        self, Level, MaxRlConfig, MeanDivisor, NStepConfig, NormalizeConfig, Own, RetraceConfig, RetraceInput,
        Singleton, TdInput, TraceCoefficient,
    },
    Moments, Spread,
};

use crate::golden::{
    case::{word, Case, Failure, Number, Ran},
    compare::Output,
};

pub(super) fn n_step_returns<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, values, bootstrap) = (case.tokens::<R>("rewards")?, case.tokens("values")?, case.bootstrap()?);
    let config = NStepConfig {
        n: case.whole("n")? as usize,
        gamma: case.number("gamma", Some(1.0))?,
        lambda: case.number("lambda", Some(1.0))?,
        across: case.conventions.across,
    };
    let mut out = vec![R::zero(); rewards.len()];
    let input = TdInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
    advantage::n_step_returns(&case.batch()?, input, &config, &mut out)?;
    Ok(vec![("returns", Output::tokens(out))])
}

pub(super) fn retrace<R: Number>(case: &Case<'_>) -> Ran {
    let (rewards, values, bootstrap) = (case.tokens::<R>("rewards")?, case.tokens("values")?, case.bootstrap()?);
    let action_values = case.tokens("action_values")?;
    let (log_probs, old_log_probs) = (case.tokens("log_probs")?, case.tokens("old_log_probs")?);
    let coefficient = word(case.text("coefficient", "retrace")?, "coefficient", |name| match name {
        "importance" => Some(TraceCoefficient::Importance),
        "lambda" => Some(TraceCoefficient::Lambda),
        "tree-backup" => Some(TraceCoefficient::TreeBackup),
        "retrace" => Some(TraceCoefficient::Retrace),
        _ => None,
    })?;
    let config = RetraceConfig {
        gamma: case.number("gamma", Some(1.0))?,
        lambda: case.number("lambda", Some(1.0))?,
        coefficient,
    };
    let mut out = vec![R::zero(); rewards.len()];
    let input = RetraceInput {
        rewards: &rewards,
        values: &values,
        action_values: &action_values,
        bootstrap: &bootstrap,
        log_probs: &log_probs,
        old_log_probs: &old_log_probs,
    };
    advantage::retrace(&case.batch()?, input, &config, &mut out)?;
    Ok(vec![("returns", Output::tokens(out))])
}

fn level(case: &Case<'_>, key: &str) -> Result<Level, Failure> {
    word(case.text(key, "group")?, key, |name| match name {
        "batch" => Some(Level::Batch),
        "group" => Some(Level::Group),
        "none" => Some(Level::Off),
        _ => None,
    })
}

/// One entry per sequence.
pub(super) fn normalize_scores<R: Number>(case: &Case<'_>) -> Ran {
    let (scores, groups) = (case.input::<R>("scores", case.rows)?, case.groups()?);
    let config = NormalizeConfig {
        mean: level(case, "mean")?,
        own: if case.flag("leave_one_out", false)? { Own::LeftOut } else { Own::Included },
        deviation: level(case, "deviation")?,
        spread: if case.flag("unbiased", true)? { Spread::Sample } else { Spread::Population },
        epsilon: case.number("epsilon", Some(1e-5))?,
    };
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    advantage::normalize_scores(&groups, &scores, &config, &mut scratch, &mut out)?;
    Ok(vec![("scores", Output::entries(out))])
}

/// One entry per sequence; SkyRL's rule.
pub(super) fn max_rl<R: Number>(case: &Case<'_>) -> Ran {
    let (scores, groups) = (case.input::<R>("scores", case.rows)?, case.groups()?);
    let config = MaxRlConfig {
        divisor: MeanDivisor::PlusEpsilon,
        epsilon: case.number("epsilon", Some(1e-6))?,
        singleton: Singleton::Raw,
    };
    let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![R::zero(); case.rows]);
    advantage::max_rl(&groups, &scores, &config, &mut scratch, &mut out)?;
    Ok(vec![("scores", Output::entries(out))])
}
