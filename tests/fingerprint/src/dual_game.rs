//! Stages 5 and 7: the dual game, its weights, and the machines that set its prices.

use tokenwise::{
    control::{
        BudgetObservation, BudgetSchedule, BudgetSource, CollapseGuard, DualGame, DualGameRules, DualGameStep,
        EntropyBudget, EntropyBudgetConfig, Follow, LinearKl, LinearKlConfig,
    },
    loss::{
        self, Aggregate, BranchSpread, BranchValue, DualGameConfig, DualGameInput, DualGameLoss, DualGradient,
        ScoreScope, StructuralConfig, StructuralInput, TokenWeight, TokenWeightInput, TrieConfig, TrieInput,
        TriePrefix, TrieScratch,
    },
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
    inputs::Random,
    loss::PER_SEQUENCE,
    shapes::MOST,
};

impl<R: Value> Case<'_, R> {
    fn token_weights(&self) -> [TokenWeight<'_, R>; 3] {
        [TokenWeight::Plain, TokenWeight::KlGated, TokenWeight::Structural(self.weights)]
    }
}

pub(crate) fn token_weights<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for weight in case.token_weights() {
        for ref_log_probs in [None, Some(case.ref_log_probs)] {
            let input =
                TokenWeightInput { log_probs: case.log_probs, ref_log_probs, advantages: case.advantages, weight };
            let result = loss::token_weights(&case.batch, input, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn advantage_jump<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let result = loss::advantage_jump(&case.batch, case.advantages, out.a);
    out.record(result);
}

pub(crate) fn structural_weights<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = StructuralInput { log_probs: case.log_probs, advantages: case.advantages, complexity: case.weights };
    for scope in [ScoreScope::Batch, ScoreScope::Sequence] {
        let result =
            loss::structural_weights(&case.batch, input, &StructuralConfig { scope, ..Default::default() }, out.a);
        out.record(result);
    }
}

pub(crate) fn trie_complexity<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let (mut tokens, mut random) = ([0; MOST], Random::new(9));
    let tokens = &mut tokens[..case.batch.tokens()];
    tokens.fill_with(|| random.below(2));
    let input = TrieInput { tokens, rewards: case.rewards };
    let scratch = &mut [TrieScratch::default(); 9][..case.batch.sequences()];
    for (prefix, value, spread, min_branch_size) in [
        (TriePrefix::Any, BranchValue::Mean, BranchSpread::Variance, 1),
        (TriePrefix::Any, BranchValue::Median, BranchSpread::InterQuartileRange, 2),
        (TriePrefix::Same, BranchValue::Mean, BranchSpread::Range, 1),
    ] {
        let config = TrieConfig { prefix, value, spread, min_branch_size };
        let result = loss::trie_complexity(&case.batch, &case.paired, input, &config, scratch, out.a);
        out.record(result);
    }
}

impl Hashed for DualGameLoss {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.loss, self.clip_fraction, self.clip_fraction_upper, self.clip_fraction_lower, self.kl]);
    }
}

pub(crate) fn dual_game<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for weight in case.token_weights() {
        for gradient in [DualGradient::Detached, DualGradient::Through] {
            for (policy, aggregate) in case.policy_losses().into_iter().zip([Aggregate::default(), PER_SEQUENCE]) {
                let config =
                    DualGameConfig { lambda: 0.3, beta: 0.05, gradient, aggregate, ..DualGameConfig::default() };
                let input = DualGameInput { policy, ref_log_probs: Some(case.ref_log_probs), weight };
                let result = loss::dual_game(&case.batch, input, &config, out.a);
                out.record(result);
            }
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
    for weight in case.token_weights() {
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
