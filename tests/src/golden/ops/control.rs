//! The controllers: a series of observations in, a series of prices out.

use serde_json::Value;
use tokenwise::control::{
    AdaptiveKl, AdaptiveKlConfig, BudgetObservation, BudgetSchedule, BudgetSource, CollapseGuard, EntropyBudget,
    EntropyBudgetConfig, EntropyBudgetState, Follow, LinearKl, LinearKlConfig,
};

use super::spelling::{choice_of, flag_of, input_of, number_of, optional_of, param_of, series_of, whole_of};
use crate::golden::{
    case::{Case, Failure, Ran},
    compare::Output,
};

const KL: &[&str] = &["kl", "kls", "KL", "kl_values", "current_kl", "observations"];
const FIRST_BETA: &[&str] =
    &["beta", "beta0", "beta_init", "init_beta", "initial_beta", "coef", "kl_coef", "init_kl_coef"];
const TARGET: &[&str] = &["target", "target_kl", "D"];
const WH_SUM: &[&str] = &["wH_sum", "wh_sum", "wH"];
const RATE: [&str; 3] = ["learning_rate", "lr", "eta"];

/// How many steps there are: the length of the first of these inputs that is there.
fn steps(case: &Case<'_>, names: &[&str]) -> Result<usize, Failure> {
    match input_of(case, names) {
        Some(key) => Ok(case.input_len(key)),
        None => Err(Failure::Malformed(format!("inputs: missing \"{}\"", names[0]))),
    }
}

/// The window of something that follows what is measured: a flag, or its length.
fn follow(case: &Case<'_>, names: &[&str]) -> Result<Option<Follow>, Failure> {
    let default = Follow::default();
    let (length, factor) = (
        whole_of(case, &["window", "W"], Some(default.length.into()))?,
        number_of(case, &["factor"], Some(default.factor))?,
    );
    let on = match param_of(case, names)? {
        Some(name) => match case.param(name) {
            Some(Value::Number(_)) => {
                return Ok(Some(Follow { length: whole_of(case, &[name], None)? as u32, factor }));
            }
            _ => case.flag(name, false)?,
        },
        None => false,
    };
    Ok(on.then_some(Follow { length: length as u32, factor }))
}

pub(super) fn adaptive_kl(case: &Case<'_>) -> Ran {
    let len = steps(case, KL)?;
    let kl = series_of(case, KL, len, None)?;
    let samples = series_of(case, &["n", "samples", "n_steps", "batch_size"], len, Some(case.rows as f64))?;
    let default = AdaptiveKlConfig::default();
    let mut controller = AdaptiveKl::new(&AdaptiveKlConfig {
        beta: number_of(case, FIRST_BETA, Some(default.beta))?,
        target: number_of(case, TARGET, Some(default.target))?,
        horizon: number_of(case, &["horizon"], Some(default.horizon))?,
    })?;
    let mut betas = Vec::new();
    for (kl, samples) in kl.into_iter().zip(samples) {
        betas.push(controller.update(kl, samples as u32)?);
    }
    Ok(["beta", "betas", "coef", "kl_coef", "values", "value"]
        .map(|name| (name, Output::Entries(betas.clone())))
        .into())
}

pub(super) fn linear_kl(case: &Case<'_>) -> Ran {
    let kl = series_of(case, KL, steps(case, KL)?, None)?;
    let default = LinearKlConfig::default();
    let rate = [&RATE[..], &["eta_beta", "beta_lr"]].concat();
    let mut controller = LinearKl::new(&LinearKlConfig {
        beta: number_of(case, FIRST_BETA, Some(default.beta))?,
        target: number_of(case, TARGET, Some(default.target))?,
        learning_rate: number_of(case, &rate, Some(default.learning_rate))?,
        beta_min: number_of(case, &["beta_min", "min_beta"], Some(default.beta_min))?,
        follow: follow(case, &["adaptive_target", "adaptive"])?,
    })?;
    let (mut betas, mut targets) = (Vec::new(), Vec::new());
    for kl in kl {
        betas.push(controller.update(kl)?);
        targets.push(controller.target());
    }
    let betas = ["beta", "betas", "values", "value"].map(|name| (name, Output::Entries(betas.clone())));
    let targets = ["target", "targets"].map(|name| (name, Output::Entries(targets.clone())));
    Ok(betas.into_iter().chain(targets).collect())
}

fn schedule(case: &Case<'_>) -> Result<BudgetSchedule, Failure> {
    const TOTAL: &[&str] = &["total_steps", "steps", "T"];
    let names: [&[&str]; 4] = [
        &["constant", "none"],
        &["reward-std-usage", "rewardstdusage", "decay-target"],
        &["exponential", "exp"],
        &["plateau"],
    ];
    Ok(match choice_of(case, &["schedule", "budget_schedule"], &names, 0)? {
        0 => BudgetSchedule::Constant,
        1 => BudgetSchedule::RewardStdUsage {
            share: number_of(case, &["a", "share"], Some(0.5))?,
            total_steps: whole_of(case, TOTAL, None)?,
        },
        2 => BudgetSchedule::Exponential {
            alpha: number_of(case, &["alpha"], None)?,
            total_steps: whole_of(case, TOTAL, None)?,
        },
        _ => BudgetSchedule::Plateau {
            decay: number_of(case, &["ema_decay", "decay"], Some(0.95))?,
            min_delta: number_of(case, &["min_delta"], Some(0.0))?,
            patience: whole_of(case, &["patience"], None)?,
            kappa: number_of(case, &["kappa"], Some(0.8))?,
            budget_min: number_of(case, &["B_min", "b_min", "budget_min"], Some(0.0))?,
        },
    })
}

fn budget_config(case: &Case<'_>, given: Option<f64>) -> Result<EntropyBudgetConfig, Failure> {
    let default = EntropyBudgetConfig::default();
    let warm_up = whole_of(case, &["warmup", "warmup_steps", "warm_up", "K"], Some(10))?;
    let rho = number_of(case, &["rho"], Some(0.45))?;
    let rate = [&RATE[..], &["eta_lambda", "lambda_lr", "alpha_lambda"]].concat();
    let (low, high) = (optional_of(case, &["wH_min", "wh_min"])?, optional_of(case, &["wH_max", "wh_max"])?);
    Ok(EntropyBudgetConfig {
        lambda: number_of(case, &["lambda", "lambda0", "lambda_init", "init_lambda", "initial_lambda"], Some(0.0))?,
        learning_rate: number_of(case, &rate, Some(default.learning_rate))?,
        lambda_max: optional_of(case, &["lambda_max", "max_lambda"])?,
        wh_range: (low.is_some() || high.is_some()).then(|| (low.unwrap_or(f64::MIN), high.unwrap_or(f64::MAX))),
        source: match (given, optional_of(case, &["B0", "b0", "B", "budget"])?) {
            (Some(b0), _) | (None, Some(b0)) => BudgetSource::Given(b0),
            _ => BudgetSource::WarmUp { steps: warm_up, rho },
        },
        follow: follow(case, &["adaptive", "adaptive_B0", "adaptive_b0"])?,
        schedule: schedule(case)?,
        guard: if flag_of(case, &["collapse_guard", "guard"])? { CollapseGuard::On } else { CollapseGuard::Off },
    })
}

pub(super) fn entropy_budget(case: &Case<'_>) -> Ran {
    let len = steps(case, WH_SUM)?;
    let wh_sum = series_of(case, WH_SUM, len, None)?;
    let counts = series_of(case, &["token_count", "token_counts", "tokens", "N", "n"], len, None)?;
    let stds = series_of(case, &["reward_std", "reward_stds"], len, Some(0.0))?;
    let means = series_of(case, &["reward_sum_mean", "reward_mean", "rewards", "reward"], len, Some(0.0))?;
    let numbers = match input_of(case, &["step", "steps"]) {
        Some(key) => case.input(key, len)?,
        None => (0..len).map(|step| step as f64).collect::<Vec<f64>>(),
    };
    // a budget of its own for every step
    let budgets = match input_of(case, &["B", "budget", "B0"]) {
        Some(key) => Some(case.input::<f64>(key, len)?),
        None => None,
    };
    let first = budgets.as_ref().and_then(|budgets| budgets.first().copied());
    let config = budget_config(case, first)?;
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
        let flag = |yes: bool| f64::from(u8::from(yes));
        let row = [
            report.lambda,
            report.budget.unwrap_or(f64::NAN),
            report.budget_per_token.unwrap_or(f64::NAN),
            report.usage_ratio.unwrap_or(f64::NAN),
            report.wh_per_token,
            flag(report.plateau),
            flag(report.collapse),
        ];
        for (series, value) in series.iter_mut().zip(row) {
            series.push(value);
        }
    }
    let names: [&[&'static str]; 7] = [
        &["lambda", "lambdas", "values", "value"],
        &["B", "budget", "budgets"],
        &["B_token", "B_t", "per_token_budget_Bt"],
        &["usage_ratio", "usage"],
        &["wH_per_token"],
        &["plateau"],
        &["collapse"],
    ];
    let named = names.into_iter().zip(series);
    Ok(named
        .flat_map(|(names, values)| names.iter().map(move |&name| (name, Output::Entries(values.clone()))))
        .collect())
}
