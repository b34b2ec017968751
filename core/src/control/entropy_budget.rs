use super::{
    budget::{BudgetObservation, BudgetReport, BudgetSource, CollapseGuard, EntropyBudgetConfig},
    schedule::ScheduleState,
    window::Window,
};
use crate::{
    error::{check_config, check_finite, check_not_negative, Result},
    math::clamp,
};

/// The state of an [`EntropyBudget`] between two steps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EntropyBudgetState {
    /// The current price λ.
    pub lambda: f64,
    /// B0; `None` before the warm-up is over.
    pub b0: Option<f64>,
    /// B of the last step.
    pub budget: Option<f64>,
    /// Steps of the warm-up so far.
    pub warm_steps: u64,
    /// Σ of `wH_sum` over them.
    pub warm_sum: f64,
    /// The last values of `wH_sum`, if B0 follows them.
    pub window: Window,
    /// The state of the schedule.
    pub schedule: ScheduleState,
}

/// A price of entropy that rises while more entropy is used than the budget allows.
///
/// ```text
/// λ ← max(0, λ + η (wH_sum / N − B / N))        B = schedule(B0), see BudgetSchedule
/// usage_ratio = wH_sum / max(B, 1e-8)
/// ```
///
/// **Alignment.** None: one observation per step.
///
/// **Mask.** None. `wH_sum` and N are over kept tokens, as in [`analysis`](crate::metric::analysis).
///
/// **Errors.** [`Error::Config`](crate::Error::Config) if a setting is outside its domain, a measurement is not finite,
/// or N is 0; the state is then unchanged.
///
/// **Reference.** BNTO, `docs/bnto.md` §6; the guard §7.
///
/// # Example
///
/// ```
/// use tokenwise::control::*;
///
/// let source = BudgetSource::WarmUp { steps: 1, rho: 0.5 };
/// let mut controller = EntropyBudget::new(&EntropyBudgetConfig { source, learning_rate: 0.5, ..Default::default() })?;
/// let warm = controller.update(&BudgetObservation { wh_sum: 8.0, token_count: 4, ..Default::default() })?;
/// assert_eq!((warm.lambda, warm.budget, warm.warm_up_finished), (0.0, None, true));
/// let report = controller.update(&BudgetObservation { step: 1, wh_sum: 6.0, token_count: 4, ..Default::default() })?;
/// assert_eq!((report.lambda, report.budget, report.usage_ratio), (0.25, Some(4.0), Some(1.5)));
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "super::Parts<EntropyBudgetConfig, EntropyBudgetState>"))]
pub struct EntropyBudget {
    config: EntropyBudgetConfig,
    state: EntropyBudgetState,
}

impl EntropyBudget {
    /// A controller at its initial price.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting is outside its domain.
    pub fn new(config: &EntropyBudgetConfig) -> Result<Self> {
        config.check()?;
        let b0 = match config.source {
            BudgetSource::Given(b0) => Some(b0),
            BudgetSource::WarmUp { .. } => None,
        };
        let state = EntropyBudgetState {
            lambda: config.capped(config.lambda),
            b0,
            budget: None,
            warm_steps: 0,
            warm_sum: 0.0,
            window: Window::default(),
            schedule: ScheduleState::default(),
        };
        Ok(Self { config: *config, state })
    }

    /// A controller that continues from a state, with the same numbers as the one the state was taken from.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting or a number of the state is outside its domain.
    pub fn restore(config: &EntropyBudgetConfig, state: EntropyBudgetState) -> Result<Self> {
        config.check()?;
        check_not_negative::<f64>("lambda", state.lambda)?;
        check_config("lambda", "at most lambda_max", state.lambda, config.capped(state.lambda) == state.lambda)?;
        check_finite::<f64>("b0", state.b0.unwrap_or(0.0))?;
        check_finite::<f64>("budget", state.budget.unwrap_or(0.0))?;
        check_finite::<f64>("warm_sum", state.warm_sum)?;
        state.window.check()?;
        state.schedule.check()?;
        Ok(Self { config: *config, state })
    }

    /// The current price λ.
    pub const fn lambda(&self) -> f64 {
        self.state.lambda
    }

    /// Its settings.
    pub const fn config(&self) -> &EntropyBudgetConfig {
        &self.config
    }

    /// Its state.
    pub const fn state(&self) -> EntropyBudgetState {
        self.state
    }

    /// Adds the measurements of a step; the report has the price of the next update.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if N is 0, `wh_sum` or the rewards' mean not finite, or their deviation
    /// negative.
    pub fn update(&mut self, seen: &BudgetObservation) -> Result<BudgetReport> {
        check_finite::<f64>("wh_sum", seen.wh_sum)?;
        check_config("token_count", "at least 1", seen.token_count as f64, seen.token_count > 0)?;
        check_not_negative::<f64>("reward_std", seen.reward_std)?;
        check_finite::<f64>("reward_sum_mean", seen.reward_sum_mean)?;
        let (config, state) = (self.config, &mut self.state);
        let n = seen.token_count as f64;
        let wh_per_token = seen.wh_sum / n;
        let known = state.b0.is_some();
        if let Some(follow) = config.follow {
            if let Some(b0) = state.window.follow(seen.wh_sum, &follow).filter(|_| known) {
                state.b0 = Some(b0);
            }
        }
        let plateau = state.schedule.observe(&config.schedule, seen.reward_std, seen.reward_sum_mean, known);
        let warm_up_finished = state.warm(&config.source, seen.wh_sum);
        let mut report = BudgetReport {
            lambda: state.lambda,
            budget: None,
            budget_per_token: None,
            wh_per_token,
            usage_ratio: None,
            warm_up_finished,
            plateau,
            collapse: false,
        };
        if let Some(b0) = state.b0.filter(|_| known) {
            let budget = state.schedule.budget(&config.schedule, b0, seen.step, seen.reward_std);
            let used = match config.wh_range {
                Some((low, high)) => clamp(wh_per_token, low, high),
                None => wh_per_token,
            };
            let lambda = state.lambda + config.learning_rate * (used - budget / n);
            let lambda = if lambda.is_finite() { lambda } else { state.lambda };
            state.lambda = config.capped(if lambda < 0.0 { 0.0 } else { lambda });
            let usage = seen.wh_sum / if budget < 1e-8 { 1e-8 } else { budget };
            // an overflowed ratio is not kept: it is meaningless, and no JSON number either
            state.schedule.usage = Some(usage).filter(|usage| usage.is_finite());
            report.usage_ratio = Some(usage);
            state.budget = Some(budget);
        }
        report.collapse = config.guard == CollapseGuard::On && seen.step >= 3 && wh_per_token < 1e-4;
        if report.collapse {
            state.lambda *= 0.1;
            let twice = wh_per_token + wh_per_token;
            state.budget = state.budget.map(|_| if twice < 0.001 { 0.001 } else { twice });
        }
        report.lambda = state.lambda;
        report.budget = state.budget;
        report.budget_per_token = state.budget.map(|budget| budget / n);
        Ok(report)
    }
}

impl EntropyBudgetState {
    /// Adds a step of the warm-up; returns whether it was the last one.
    fn warm(&mut self, source: &BudgetSource, wh_sum: f64) -> bool {
        let BudgetSource::WarmUp { steps, rho } = *source else { return false };
        if self.warm_steps >= steps {
            return false;
        }
        self.warm_steps += 1;
        let sum = self.warm_sum + wh_sum;
        self.warm_sum = if sum.is_finite() { sum } else { f64::MAX };
        let finished = self.warm_steps == steps;
        if finished {
            let b0 = rho * (self.warm_sum / steps as f64);
            self.b0 = Some(if b0.is_finite() { b0 } else { f64::MAX });
        }
        finished
    }
}

#[cfg(feature = "serde")]
impl TryFrom<super::Parts<EntropyBudgetConfig, EntropyBudgetState>> for EntropyBudget {
    type Error = crate::Error;
    fn try_from(parts: super::Parts<EntropyBudgetConfig, EntropyBudgetState>) -> Result<Self> {
        Self::restore(&parts.config, parts.state)
    }
}
