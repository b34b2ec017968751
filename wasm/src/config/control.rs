//! The configs of the controllers with a state, and what a step hands to them.

use tokenwise::control::{
    BudgetObservation, BudgetSchedule, BudgetSource, CollapseGuard, DualGameRules, EntropyBudgetConfig, Follow,
    KlControlConfig, LinearKlConfig,
};

use crate::{
    js,
    read::{count, number, present, read, Read},
};

choices! {
    CollapseGuard { "off" => Off, "on" => On }
}

tagged! {
    BudgetSource {
        0 "given" (b0) => Self::Given(b0),
        1 "warm-up" (steps, rho) => Self::WarmUp { steps: steps as u64, rho },
    }
    BudgetSchedule {
        0 "constant" () => Self::Constant,
        1 "reward-std-usage" (share, total_steps) => {
            Self::RewardStdUsage { share, total_steps: total_steps as u64 }
        },
        2 "exponential" (alpha, total_steps) => Self::Exponential { alpha, total_steps: total_steps as u64 },
        3 "plateau" (decay, min_delta, patience, kappa, budget_min) => {
            Self::Plateau { decay, min_delta, patience: patience as u64, kappa, budget_min }
        },
    }
}

configs! {
    LinearKlConfig { beta: number, target: number, learning_rate: number, beta_min: number, follow: follow }
    EntropyBudgetConfig {
        lambda: number,
        learning_rate: number,
        lambda_max: nullable,
        wh_range: range,
        source: BudgetSource,
        follow: follow,
        schedule: BudgetSchedule,
        guard: CollapseGuard,
    }
    DualGameRules { kl: kl_control, budget: EntropyBudgetConfig }
    Follow { length: size, factor: number }
}

/// A fixed price, or the config of either controller.
impl Read for KlControlConfig {
    fn read(usual: Self) -> Self {
        match js::index(u32::MAX) {
            0 => Self::Fixed(number()),
            1 => Self::Linear(read()),
            2 => Self::Adaptive(read()),
            _ => usual,
        }
    }
}

impl Read for Option<Follow> {
    #[inline(never)]
    fn read(usual: Self) -> Self {
        if present() {
            Some(read())
        } else {
            usual
        }
    }
}

impl Read for Option<(f64, f64)> {
    fn read(usual: Self) -> Self {
        if present() {
            Some((number(), number()))
        } else {
            usual
        }
    }
}

/// What was measured in one step.
pub(crate) fn observation() -> BudgetObservation {
    BudgetObservation {
        step: count(),
        wh_sum: number(),
        token_count: count(),
        reward_std: number(),
        reward_sum_mean: number(),
    }
}
