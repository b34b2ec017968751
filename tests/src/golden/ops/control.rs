//! The controllers: a series of observations in, a series of prices out.

use serde_json::Value;
use tokenwise::control::{
    AdaptiveKl, AdaptiveKlConfig, BudgetObservation, BudgetSchedule, BudgetSource, CollapseGuard, EntropyBudget,
    EntropyBudgetConfig, EntropyBudgetState, Follow, LinearKl, LinearKlConfig,
};

use crate::golden::{
    case::{Case, Failure, Ran},
    compare::{Output, Outputs},
};

/// One number per step: an input of `len` entries, a parameter for all of them, or the default.
fn series(case: &Case<'_>, key: &str, len: usize, default: Option<f64>) -> Result<Vec<f64>, Failure> {
    if case.has_input(key) {
        return case.input(key, len);
    }
    Ok(vec![case.number(key, default)?; len])
}

/// The series whose length is the number of steps.
fn first_series(case: &Case<'_>, key: &str) -> Result<Vec<f64>, Failure> {
    case.input(key, case.input_len(key))
}

/// A number; `None` if it is absent or null.
fn optional(case: &Case<'_>, key: &str) -> Result<Option<f64>, Failure> {
    Ok(Some(case.number(key, Some(f64::NAN))?).filter(|number| !number.is_nan()))
}

fn whole(case: &Case<'_>, key: &str, default: Option<f64>) -> Result<u64, Failure> {
    let x = case.number(key, default)?;
    let exact = x >= 0.0 && (x as u64) as f64 == x;
    exact.then_some(x as u64).ok_or_else(|| Failure::Unfit(format!("{key}: expected a whole number, got {x}")))
}

/// The window of something that follows what is measured: a flag, or its length.
fn follow(case: &Case<'_>) -> Result<Option<Follow>, Failure> {
    let usual = Follow::default();
    let window = whole(case, "window", Some(usual.length.into()))?;
    let factor = case.number("factor", Some(usual.factor))?;
    let length = match case.param("adaptive") {
        Some(Value::Number(_)) => whole(case, "adaptive", None)?,
        _ if case.flag("adaptive", false)? => window,
        _ => return Ok(None),
    };
    Ok(Some(Follow { length: length as u32, factor }))
}

/// Each series under all its names.
fn named<const N: usize>(names: [&[&str]; N], series: [Vec<f64>; N]) -> Outputs {
    let all = names.into_iter().zip(series);
    all.flat_map(|(names, values)| names.iter().map(move |&name| (name.to_owned(), Output::Entries(values.clone()))))
        .collect()
}

pub(super) fn adaptive_kl(case: &Case<'_>) -> Ran {
    let kl = first_series(case, "kl")?;
    let samples = series(case, "samples", kl.len(), Some(case.rows as f64))?;
    let usual = AdaptiveKlConfig::default();
    let mut controller = AdaptiveKl::new(&AdaptiveKlConfig {
        beta: case.number("beta", Some(usual.beta))?,
        target: case.number("target", Some(usual.target))?,
        horizon: case.number("horizon", Some(usual.horizon))?,
    })?;
    let mut betas = Vec::new();
    for (kl, samples) in kl.into_iter().zip(samples) {
        betas.push(controller.update(kl, samples as u32)?);
    }
    Ok(named([&["beta", "betas", "coef", "kl_coef", "values", "value"]], [betas]))
}

pub(super) fn linear_kl(case: &Case<'_>) -> Ran {
    let usual = LinearKlConfig::default();
    let mut controller = LinearKl::new(&LinearKlConfig {
        beta: case.number("beta", Some(usual.beta))?,
        target: case.number("target", Some(usual.target))?,
        learning_rate: case.number("learning_rate", Some(usual.learning_rate))?,
        beta_min: case.number("beta_min", Some(usual.beta_min))?,
        follow: follow(case)?,
    })?;
    let (mut betas, mut targets) = (Vec::new(), Vec::new());
    for kl in first_series(case, "kl")? {
        betas.push(controller.update(kl)?);
        targets.push(controller.target());
    }
    Ok(named([&["beta", "betas", "values", "value"], &["target", "targets"]], [betas, targets]))
}

fn schedule(case: &Case<'_>) -> Result<BudgetSchedule, Failure> {
    Ok(match case.text("schedule", "constant")? {
        "constant" => BudgetSchedule::Constant,
        "reward-std-usage" => BudgetSchedule::RewardStdUsage {
            share: case.number("a", Some(0.5))?,
            total_steps: whole(case, "total_steps", None)?,
        },
        "exponential" => BudgetSchedule::Exponential {
            alpha: case.number("alpha", None)?,
            total_steps: whole(case, "total_steps", None)?,
        },
        "plateau" => BudgetSchedule::Plateau {
            decay: case.number("ema_decay", Some(0.95))?,
            min_delta: case.number("min_delta", Some(0.0))?,
            patience: whole(case, "patience", None)?,
            kappa: case.number("kappa", Some(0.8))?,
            budget_min: case.number("B_min", Some(0.0))?,
        },
        other => return Err(Failure::Unfit(format!("schedule: unknown value \"{other}\""))),
    })
}

fn budget_config(case: &Case<'_>, given: Option<f64>) -> Result<EntropyBudgetConfig, Failure> {
    let steps = whole(case, "warmup", Some(10.0))?;
    let rho = case.number("rho", Some(0.45))?;
    let (low, high) = (optional(case, "wH_min")?, optional(case, "wH_max")?);
    let guard = case.flag("collapse_guard", false)?;
    let b0 = optional(case, "B0")?;
    Ok(EntropyBudgetConfig {
        lambda: case.number("lambda", Some(0.0))?,
        learning_rate: case.number("learning_rate", Some(EntropyBudgetConfig::default().learning_rate))?,
        lambda_max: optional(case, "lambda_max")?,
        wh_range: low.or(high).map(|_| (low.unwrap_or(f64::MIN), high.unwrap_or(f64::MAX))),
        source: given.or(b0).map_or(BudgetSource::WarmUp { steps, rho }, BudgetSource::Given),
        follow: follow(case)?,
        schedule: schedule(case)?,
        guard: if guard { CollapseGuard::On } else { CollapseGuard::Off },
    })
}

pub(super) fn entropy_budget(case: &Case<'_>) -> Ran {
    let wh_sum = first_series(case, "wH_sum")?;
    let len = wh_sum.len();
    let counts = series(case, "token_count", len, None)?;
    let stds = series(case, "reward_std", len, Some(0.0))?;
    let means = series(case, "reward_sum_mean", len, Some(0.0))?;
    let numbers = match case.has_input("step") {
        true => case.input("step", len)?,
        false => (0..len).map(|step| step as f64).collect::<Vec<f64>>(),
    };
    // a budget of its own for every step
    let budgets = case.has_input("B0").then(|| case.input::<f64>("B0", len)).transpose()?;
    let config = budget_config(case, budgets.as_ref().and_then(|budgets| budgets.first().copied()))?;
    let mut controller = EntropyBudget::new(&config)?;
    let mut series = [const { Vec::new() }; 7];
    for step in 0..len {
        if let Some(budgets) = &budgets {
            let state = EntropyBudgetState { b0: Some(budgets[step]), ..controller.state() };
            controller = EntropyBudget::restore(&config, state)?;
        }
        let report = controller.update(&BudgetObservation {
            step: numbers[step] as u64,
            wh_sum: wh_sum[step],
            // the library counts tokens in whole numbers: below 1 there are none
            token_count: counts[step].max(0.0) as u64,
            reward_std: stds[step],
            reward_sum_mean: means[step],
        })?;
        let row = [
            report.lambda,
            report.budget.unwrap_or(f64::NAN),
            report.budget_per_token.unwrap_or(f64::NAN),
            report.usage_ratio.unwrap_or(f64::NAN),
            report.wh_per_token,
            f64::from(u8::from(report.plateau)),
            f64::from(u8::from(report.collapse)),
        ];
        for (series, value) in series.iter_mut().zip(row) {
            series.push(value);
        }
    }
    let names: [&[&str]; 7] = [
        &["lambda", "lambdas", "values", "value"],
        &["B", "budget", "budgets"],
        &["B_token", "B_t", "per_token_budget_Bt"],
        &["usage_ratio", "usage"],
        &["wH_per_token"],
        &["plateau"],
        &["collapse"],
    ];
    Ok(named(names, series))
}
