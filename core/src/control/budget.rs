//! Settings, observations and reports of an entropy budget.

use super::{schedule::BudgetSchedule, window::Follow};
use crate::error::{check_config, check_not_negative, check_positive, Result};

/// Where B0 comes from.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetSource {
    /// Given; not negative.
    Given(f64),
    /// `ρ` times the mean of `wH_sum` over the first `steps`; λ does not change until they are over.
    WarmUp {
        /// K; at least 1.
        steps: u64,
        /// ρ; positive. The experiment uses 0.3, 0.45 and 0.6.
        rho: f64,
    },
}

#[cfg(feature = "serde")]
crate::spelling::tagged! {
    BudgetSource { b0: f64, steps: u64, rho: f64 }
    "given" Given(b0) = { Self::Given(b0) }
    "warm-up" WarmUp(steps, rho) = { Self::WarmUp { steps, rho } }
}

/// The reaction to an entropy collapse.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum CollapseGuard {
    /// None.
    #[default]
    Off,
    /// From step 3 on, if `wH` per token is below 1e-4: `λ ← 0.1 λ` and `B ← max(0.001, 2 wH per token)`, after the
    /// update of λ. That budget applies until the next step, which takes its own from the schedule.
    On,
}

/// The settings of [`EntropyBudget`](crate::control::EntropyBudget).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct EntropyBudgetConfig {
    /// The initial price λ; not negative, default 0.
    pub lambda: f64,
    /// η_λ; positive, default 0.02.
    pub learning_rate: f64,
    /// The upper bound of the price, if there is one; not negative, default none. BNTO uses 10.
    pub lambda_max: Option<f64>,
    /// `wH` per token is clamped to this range for the update of λ; default no range.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::control::range"))]
    pub wh_range: Option<(f64, f64)>,
    /// Default a warm-up of 10 steps with ρ 0.45.
    pub source: BudgetSource,
    /// Whether B0 follows the measured use, `1.1 · mean of the last 10 wH_sum`; default no.
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
        check_not_negative::<f64>("lambda", self.lambda)?;
        check_positive::<f64>("learning_rate", self.learning_rate)?;
        if let Some(lambda_max) = self.lambda_max {
            check_not_negative::<f64>("lambda_max", lambda_max)?;
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
            BudgetSource::Given(b0) => check_not_negative::<f64>("b0", b0)?,
            BudgetSource::WarmUp { steps, rho } => {
                check_config("steps", "at least 1", steps as f64, steps > 0)?;
                check_positive::<f64>("rho", rho)?;
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

/// The measurements of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetObservation {
    /// The number of the step, as the trainer counts; used by the exponential schedule and the guard.
    pub step: u64,
    /// Σ w H over the kept tokens.
    pub wh_sum: f64,
    /// N, kept tokens.
    pub token_count: u64,
    /// Standard deviation of the kept rewards; used by `RewardStdUsage` only.
    pub reward_std: f64,
    /// Mean over sequences of their summed rewards; used by `Plateau` only.
    pub reward_sum_mean: f64,
}

/// The state of the budget after a step.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetReport {
    /// The price λ of the next update.
    pub lambda: f64,
    /// B; `None` before the warm-up is over.
    pub budget: Option<f64>,
    /// B / N.
    pub budget_per_token: Option<f64>,
    /// `wH_sum / N`, as measured.
    pub wh_per_token: f64,
    /// `wH_sum / max(B, 1e-8)`, with the budget that λ was updated with.
    pub usage_ratio: Option<f64>,
    /// This step was the last of the warm-up: B0 is known now.
    pub warm_up_finished: bool,
    /// A plateau was reached: the rewards have not risen for so long that the budget shrank.
    pub plateau: bool,
    /// The guard was triggered.
    pub collapse: bool,
}
