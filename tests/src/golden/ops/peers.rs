//! Estimators that rlax, AReaL and SkyRL have, and the price of KL.

use tokenwise::{
    advantage::{
        self, Level, MaxRlConfig, MeanDivisor, NStepConfig, NormalizeConfig, Own, RetraceConfig, RetraceInput,
        Singleton, TdInput, TraceCoefficient,
    },
    control::{AdaptiveKl, AdaptiveKlConfig},
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

/// The price after each observation. The frameworks have a name of their own for every setting.
pub(super) fn adaptive_kl(case: &Case<'_>) -> Ran {
    let key = ["kl", "current_kl", "observations"].into_iter().find(|key| case.has_input(key)).unwrap_or("kl");
    let observed = case.input::<f64>(key, case.input_len(key))?;
    let default = AdaptiveKlConfig::default();
    let config = AdaptiveKlConfig {
        beta: case.number_of(&["beta", "kl_coef", "init_kl_coef"], Some(default.beta))?,
        target: case.number_of(&["target", "target_kl"], Some(default.target))?,
        horizon: case.number_of(&["horizon"], Some(default.horizon))?,
    };
    let samples = match ["samples", "n_steps"].into_iter().find(|key| case.has_input(key)) {
        Some(key) => case.ids(key, observed.len())?,
        None => vec![case.number_of(&["samples", "n_steps"], Some(case.rows as f64))? as u32; observed.len()],
    };
    let mut controller = AdaptiveKl::new(&config)?;
    let steps = observed.into_iter().zip(samples).map(|(kl, samples)| controller.update(kl, samples));
    let values = steps.collect::<Result<Vec<_>, _>>()?;
    let names = ["values", "beta", "kl_coef"];
    Ok(names.into_iter().map(|name| (name, Output::Entries(values.clone()))).collect())
}
