//! What has a state: controllers, fed with the scores of a case as the KL of one step after the other, and baselines.

use tokenwise::{
    advantage::{self, RoleBaseline, RoleInput},
    control::{
        AdaptiveKl, AdaptiveKlConfig, BudgetObservation, BudgetSchedule, BudgetSource, CollapseGuard, DualGame,
        DualGameRules, DualGameStep, EntropyBudget, EntropyBudgetConfig, FixedKl, Follow, LinearKl, LinearKlConfig,
    },
    weight::TokenWeight,
};

use crate::{
    cases::{Case, Out},
    hash::Value,
};

pub(crate) fn fixed_kl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for beta in [0.0, 0.3, -1.0] {
        match FixedKl::new(beta) {
            Ok(mut controller) => {
                for (&score, samples) in case.scores.iter().zip(1..) {
                    out.record((controller.update(score.widen(), samples), controller.beta()));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}

pub(crate) fn adaptive_kl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (beta, horizon) in [(0.001, 10_000.0), (0.3, 7.0), (0.3, 0.0)] {
        match AdaptiveKl::new(&AdaptiveKlConfig { beta, target: 0.7, horizon }) {
            Ok(mut controller) => {
                for (&score, samples) in case.scores.iter().zip([1, 64, 3, 1024, 7, 9, 512, 2, 100]) {
                    out.record((controller.update(score.widen(), samples), controller.beta()));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}

pub(crate) fn linear_kl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for follow in [None, Some(Follow { length: 3, factor: 1.1 })] {
        match LinearKl::new(&LinearKlConfig { beta: 0.3, target: 0.7, follow, ..Default::default() }) {
            Ok(mut controller) => {
                for &score in case.scores {
                    out.record((controller.update(score.widen()), controller.target()));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}

fn schedules() -> [BudgetSchedule; 4] {
    [
        BudgetSchedule::Constant,
        BudgetSchedule::reward_std_usage(50),
        BudgetSchedule::Exponential { alpha: 1.3, total_steps: 7 },
        BudgetSchedule::Plateau { decay: 0.6, min_delta: 0.1, patience: 2, kappa: 0.7, budget_min: 0.05 },
    ]
}

pub(crate) fn entropy_budget<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for schedule in schedules() {
        let config = EntropyBudgetConfig {
            source: BudgetSource::WarmUp { steps: 2, rho: 0.45 },
            schedule,
            guard: CollapseGuard::On,
            ..Default::default()
        };
        match EntropyBudget::new(&config) {
            Ok(mut budget) => {
                for (step, &score) in (0..).zip(case.scores) {
                    let report = budget.update(&BudgetObservation {
                        step,
                        wh_sum: score.widen(),
                        token_count: 3 + step,
                        reward_std: score.abs().widen(),
                        reward_sum_mean: score.widen(),
                    });
                    out.record(report.map(|report| {
                        let events = [report.warm_up_finished, report.plateau, report.collapse];
                        ([Some(report.lambda), report.budget, report.usage_ratio], events)
                    }));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}

pub(crate) fn dual_game_step<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let budget = EntropyBudgetConfig {
        source: BudgetSource::Given(0.7),
        schedule: BudgetSchedule::reward_std_usage(50),
        ..Default::default()
    };
    for weight in [TokenWeight::Plain, TokenWeight::KlGated, TokenWeight::Structural(case.weights)] {
        match DualGame::new(&DualGameRules { budget, ..Default::default() }) {
            Ok(mut game) => {
                for _ in 0..2 {
                    let input = DualGameStep {
                        old_log_probs: case.old_log_probs,
                        ref_log_probs: Some(case.ref_log_probs),
                        advantages: case.advantages,
                        rewards: case.rewards,
                        weight,
                        last_update: None,
                    };
                    let report = game.step(&case.batch, input, None);
                    let failed =
                        report.map(|report| report.entries().for_each(|(key, value)| out.record((key, value))));
                    out.record(failed);
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}

pub(crate) fn role_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    const ROLES: [u32; 9] = [0, 1, 0, 0, 1, 1, 0, 1, 0];
    for decay in [0.9, 0.0, 1.0, 2.0] {
        match RoleBaseline::new(decay) {
            Ok(start) => {
                let mut baselines = [start; 2];
                // the baselines carry over from one call to the next
                for scores in [case.scores, case.bootstrap] {
                    let roles = &ROLES[..scores.len()];
                    let result = advantage::role_baseline(RoleInput { roles, scores }, &mut baselines, out.sequences);
                    out.record((result, baselines.map(|role| role.baseline())));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}
