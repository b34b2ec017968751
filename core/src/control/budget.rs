//! What an entropy budget is made of, reads and reports.

use super::{schedule::BudgetSchedule, window::Follow};
use crate::error::{check_config, check_not_negative, check_positive, Result};

/// Where B0 comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum BudgetSource {
    /// Given; not negative.
    Given(f64),
    /// `ρ` times the mean of `wH_sum` over the first `steps`; λ does not move until they are over.
    WarmUp {
        /// K; at least 1.
        steps: u64,
        /// ρ; positive. The experiment has 0.3, 0.45 and 0.6.
        rho: f64,
    },
}

/// What to do when entropy is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CollapseGuard {
    /// Nothing.
    #[default]
    Off,
    /// From step 3 on, if `wH` per token is below 1e-4: `λ ← 0.1 λ` and `B ← max(0.001, 2 wH per token)`, after the update of λ.
    /// That budget stands until the next step takes its own from the schedule.
    On,
}

/// The settings of [`EntropyBudget`](crate::control::EntropyBudget).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EntropyBudgetConfig {
    /// The first price λ; not negative, default 0.
    pub lambda: f64,
    /// η_λ; positive, default 0.02.
    pub learning_rate: f64,
    /// The highest price, if there is one; not negative, default none. The owner's is 10.
    pub lambda_max: Option<f64>,
    /// `wH` per token is held to this range before λ sees it; default not.
    pub wh_range: Option<(f64, f64)>,
    /// Default a warm-up of 10 steps with ρ 0.45.
    pub source: BudgetSource,
    /// Whether B0 follows what is used, `1.1 · mean of the last 10 wH_sum`; default no.
    pub follow: Option<Follow>,
    /// Default [`BudgetSchedule::Constant`].
    pub schedule: BudgetSchedule,
    /// Default [`CollapseGuard::Off`].
    pub guard: CollapseGuard,
}

impl Default for EntropyBudgetConfig {
    fn default() -> Self {
        Self {
            lambda: 0.0,
            learning_rate: 0.02,
            lambda_max: None,
            wh_range: None,
            source: BudgetSource::WarmUp { steps: 10, rho: 0.45 },
            follow: None,
            schedule: BudgetSchedule::Constant,
            guard: CollapseGuard::Off,
        }
    }
}

impl EntropyBudgetConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_not_negative("lambda", self.lambda)?;
        check_positive("learning_rate", self.learning_rate)?;
        if let Some(lambda_max) = self.lambda_max {
            check_not_negative("lambda_max", lambda_max)?;
        }
        if let Some((low, high)) = self.wh_range {
            check_config(
                "wh_range",
                "finite, the lower end first",
                low,
                low.is_finite() && high.is_finite() && low <= high,
            )?;
        }
        match self.source {
            BudgetSource::Given(b0) => check_not_negative("b0", b0)?,
            BudgetSource::WarmUp { steps, rho } => {
                check_config("steps", "at least 1", steps as f64, steps > 0)?;
                check_positive("rho", rho)?;
            }
        }
        self.follow.map_or(Ok(()), |follow| follow.check())?;
        self.schedule.check()
    }

    pub(super) fn capped(&self, lambda: f64) -> f64 {
        match self.lambda_max {
            Some(most) if lambda > most => most,
            _ => lambda,
        }
    }
}

/// What was measured in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetObservation {
    /// The number of the step, as the trainer counts; the exponential schedule and the guard look at it.
    pub step: u64,
    /// Σ w H over the kept tokens.
    pub wh_sum: f64,
    /// N, kept tokens.
    pub token_count: u64,
    /// Standard deviation of the kept rewards; only `RewardStdUsage` looks at it.
    pub reward_std: f64,
    /// Mean over sequences of their summed rewards; only `Plateau` looks at it.
    pub reward_sum_mean: f64,
}

/// What a step made of the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetReport {
    /// The price of the next update.
    pub lambda: f64,
    /// B; none before the warm-up is over.
    pub budget: Option<f64>,
    /// B / N.
    pub budget_per_token: Option<f64>,
    /// `wH_sum / N`, as measured.
    pub wh_per_token: f64,
    /// `wH_sum / max(B, 1e-8)`, of the budget that λ was updated by.
    pub usage_ratio: Option<f64>,
    /// This step was the last of the warm-up: B0 is known now.
    pub warm_up_finished: bool,
    /// The rewards have not risen for so long that the budget shrank.
    pub plateau: bool,
    /// The guard had to act.
    pub collapse: bool,
}
