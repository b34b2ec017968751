//! The schedules of an entropy budget.

use crate::{
    error::{check_config, check_not_negative, check_unit, Result},
    math::{clamp, exp},
};

/// How the budget B is computed from B0.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BudgetSchedule {
    /// `B = B0`.
    #[default]
    Constant,
    /// `B = B0 · max(0.1, a σ̂ + (1 − a) u)`: smaller where rewards agree and where little was used. Group C1,
    /// `decay_target`.
    RewardStdUsage {
        /// a, the share of the rewards' deviation; in `[0, 1]`, usually 0.5.
        share: f64,
        /// Steps of the whole run: σ_max is the largest deviation seen in the first min(100, a tenth of them).
        total_steps: u64,
    },
    /// `B = B0 · exp(−α · step / T)`.
    Exponential {
        /// α; not negative.
        alpha: f64,
        /// T; positive.
        total_steps: u64,
    },
    /// `B = max(B_min, B0 · κ^m)` after m plateaus: the running mean of the rewards has not risen for `patience` steps.
    /// Group C2.
    Plateau {
        /// Weight of the past in the running mean; in `[0, 1]`, usually 0.95.
        decay: f64,
        /// A rise counts if it is above this; not negative.
        min_delta: f64,
        /// Steps without a rise that make a plateau; at least 1.
        patience: u64,
        /// κ; in `[0, 1]`, usually 0.8.
        kappa: f64,
        /// B_min; not negative.
        budget_min: f64,
    },
}

#[cfg(feature = "serde")]
crate::spelling::tagged! {
    BudgetSchedule {
        share: f64, alpha: f64, total_steps: u64, decay: f64, min_delta: f64, patience: u64, kappa: f64, budget_min: f64
    }
    "constant" Constant() = { Self::Constant }
    "reward-std-usage" RewardStdUsage(share, total_steps) = { Self::RewardStdUsage { share, total_steps } }
    "exponential" Exponential(alpha, total_steps) = { Self::Exponential { alpha, total_steps } }
    "plateau" Plateau(decay, min_delta, patience, kappa, budget_min) = {
        Self::Plateau { decay, min_delta, patience, kappa, budget_min }
    }
}

impl BudgetSchedule {
    /// Group C1 of the experiment: `RewardStdUsage` with a = 0.5.
    pub const fn reward_std_usage(total_steps: u64) -> Self {
        Self::RewardStdUsage { share: 0.5, total_steps }
    }

    /// Group C2 of the experiment: `Plateau` with decay 0.95 and κ 0.8, no lower bound of the budget.
    pub const fn plateau(min_delta: f64, patience: u64) -> Self {
        Self::Plateau { decay: 0.95, min_delta, patience, kappa: 0.8, budget_min: 0.0 }
    }

    pub(super) fn check(&self) -> Result<()> {
        match *self {
            Self::Constant => Ok(()),
            Self::RewardStdUsage { share, .. } => check_unit("share", share),
            Self::Exponential { alpha, total_steps } => {
                check_config("total_steps", "at least 1", total_steps as f64, total_steps > 0)?;
                check_not_negative::<f64>("alpha", alpha)
            }
            Self::Plateau { decay, min_delta, patience, kappa, budget_min } => {
                check_unit("decay", decay)?;
                check_not_negative::<f64>("min_delta", min_delta)?;
                check_config("patience", "at least 1", patience as f64, patience > 0)?;
                check_unit("kappa", kappa)?;
                check_not_negative::<f64>("budget_min", budget_min)
            }
        }
    }
}

/// The state of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ScheduleState {
    /// Steps seen.
    pub seen: u64,
    /// The largest deviation of the rewards in the first steps; 0 if unknown.
    pub sigma_max: f64,
    /// The share of its budget that the previous step used; `None` if not known.
    pub usage: Option<f64>,
    /// The running mean of the rewards; `None` before the first step.
    pub reward_ema: Option<f64>,
    /// The running mean at its last rise.
    pub reward_best: f64,
    /// Steps since that rise or the last plateau.
    pub waited: u64,
    /// m, plateaus so far.
    pub plateaus: u64,
    /// κ^m.
    pub factor: f64,
}

impl Default for ScheduleState {
    fn default() -> Self {
        Self {
            seen: 0,
            sigma_max: 0.0,
            usage: None,
            reward_ema: None,
            reward_best: 0.0,
            waited: 0,
            plateaus: 0,
            factor: 1.0,
        }
    }
}

impl ScheduleState {
    pub(super) fn check(&self) -> Result<()> {
        check_not_negative::<f64>("sigma_max", self.sigma_max)?;
        check_not_negative::<f64>("factor", self.factor)?;
        let numbers = [("usage", self.usage), ("reward_ema", self.reward_ema), ("reward_best", Some(self.reward_best))];
        numbers.iter().try_for_each(|&(what, number)| crate::error::check_finite::<f64>(what, number.unwrap_or(0.0)))
    }

    /// Adds the measurements of a step; returns whether a plateau was reached. Steps without a rise are counted only if
    /// there is a budget to shrink.
    pub(super) fn observe(&mut self, schedule: &BudgetSchedule, reward_std: f64, reward: f64, counts: bool) -> bool {
        let seen = self.seen;
        self.seen += 1;
        match *schedule {
            BudgetSchedule::RewardStdUsage { total_steps, .. } => {
                if seen < (total_steps / 10).min(100) && reward_std > self.sigma_max {
                    self.sigma_max = reward_std;
                }
                false
            }
            BudgetSchedule::Plateau { decay, min_delta, patience, kappa, .. } => {
                let Some(before) = self.reward_ema else {
                    (self.reward_ema, self.reward_best) = (Some(reward), reward);
                    return false;
                };
                let ema = decay * before + (1.0 - decay) * reward;
                self.reward_ema = Some(ema);
                if ema > self.reward_best + min_delta {
                    (self.reward_best, self.waited) = (ema, 0);
                } else if counts {
                    self.waited += 1;
                }
                let reached = self.waited >= patience;
                if reached {
                    self.waited = 0;
                    self.plateaus += 1;
                    self.factor *= kappa;
                }
                reached
            }
            _ => false,
        }
    }

    /// B from B0.
    pub(super) fn budget(&self, schedule: &BudgetSchedule, b0: f64, step: u64, reward_std: f64) -> f64 {
        match *schedule {
            BudgetSchedule::Constant => b0,
            BudgetSchedule::RewardStdUsage { share, .. } => {
                let sigma = if self.sigma_max > 0.0 { clamp(reward_std / self.sigma_max, 0.0, 1.0) } else { 0.0 };
                let usage = self.usage.filter(|&usage| (0.0..=1.0).contains(&usage)).unwrap_or(1.0);
                let factor = share * sigma + (1.0 - share) * usage;
                b0 * if factor < 0.1 { 0.1 } else { factor }
            }
            BudgetSchedule::Exponential { alpha, total_steps } => b0 * exp(-alpha * step as f64 / total_steps as f64),
            BudgetSchedule::Plateau { budget_min, .. } => {
                let budget = b0 * self.factor;
                // the lower bound limits shrinking; it does not raise a budget that started below it
                let floor = if budget_min < b0 { budget_min } else { b0 };
                if budget < floor {
                    floor
                } else {
                    budget
                }
            }
        }
    }
}
