//! Stages 5 and 7: the dual game, its weights, and its controllers.

use tokenwise::{control::*, loss::*, metric::Histogram, Batch, Groups};

use crate::{
    losses::aggregation,
    reader::{tokens, Reader},
};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (a, b, c, d, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let reference = reader.pick(&[None, Some(&d[..])]);
    let weight = reader.pick(&[TokenWeight::Plain, TokenWeight::KlGated, TokenWeight::Structural(&d[..])]);
    let input = TokenWeightInput { log_probs: &a, ref_log_probs: reference, advantages: &c, weight };
    tokens(batch, len, 1, |out| token_weights(batch, input, out));
    tokens(batch, len, 1, |out| advantage_jump(batch, &c, out));
    let config = StructuralConfig {
        complexity: reader.number(),
        surprisal: reader.number(),
        drift: reader.number(),
        scope: reader.pick(&[ScoreScope::Batch, ScoreScope::Sequence]),
    };
    let input = StructuralInput { log_probs: &a, advantages: &c, complexity: &d };
    tokens(batch, len, 1, |out| structural_weights(batch, input, &config, out));

    let (ids, group_ids) = (reader.ids(n, 3), reader.ids(sequences, 3));
    let mut scratch = vec![TrieScratch::default(); reader.len(sequences)];
    let config = TrieConfig {
        prefix: reader.pick(&[TriePrefix::Any, TriePrefix::Same]),
        value: reader.pick(&[BranchValue::Mean, BranchValue::Median]),
        spread: reader.pick(&[BranchSpread::Variance, BranchSpread::InterQuartileRange, BranchSpread::Range]),
        min_branch_size: usize::from(reader.byte() % 4),
    };
    if let Ok(groups) = Groups::from_ids(&group_ids) {
        let input = TrieInput { tokens: &ids, rewards: &b };
        tokens(batch, len, 1, |out| trie_complexity(batch, &groups, input, &config, &mut scratch, out));
    }

    let policy = PolicyLossInput {
        log_probs: &a,
        old_log_probs: &b,
        advantages: &c,
        weights: reader.pick(&[None, Some(&d[..])]),
    };
    let aggregate = aggregation(reader, None);
    let bound = reader.share() * 20.0;
    let config = DualGameConfig {
        gamma: reader.share() * 2.0,
        lambda: reader.share(),
        beta: reader.share(),
        clip_low: reader.share(),
        clip_high: reader.share(),
        gradient: reader.pick(&[DualGradient::Detached, DualGradient::Through]),
        log_ratio_bound: reader.pick(&[None, Some(bound)]),
        aggregate,
        divisor: aggregate.divisor,
    };
    let input = DualGameInput { policy, ref_log_probs: reference, weight };
    tokens(batch, len, 1, |grad| dual_game(batch, input, &config, grad).map(drop));

    let rules = DualGameRules { kl: kl(reader), budget: budget(reader) };
    let Ok(mut game) = DualGame::new(&rules) else { return };
    for _ in 0..3 {
        let before = game;
        let input = DualGameStep {
            old_log_probs: &a,
            ref_log_probs: reference,
            advantages: &c,
            rewards: &b,
            weight,
            last_update: None,
        };
        let mut room = vec![0.0; len];
        let (mut entropy, mut covariance) = (Histogram::default(), Histogram::default());
        let distribution =
            DualGameDistribution { scratch: &mut room, entropy: &mut entropy, covariance: &mut covariance };
        match game.step(batch, input, Some(distribution)) {
            Ok(report) => {
                assert!(report.lambda() >= 0.0, "a negative price of entropy");
                assert!(report.entries().count() > 0);
            }
            Err(_) => assert_eq!(game, before, "a refused step moved the game"),
        }
        assert_eq!(DualGame::restore(&rules, game.state()), Ok(game), "a state of its own was refused");
    }
}

fn follow(reader: &mut Reader<'_>) -> Option<Follow> {
    let follow = Follow { length: u32::from(reader.byte() % 40), factor: reader.share() * 2.0 };
    reader.pick(&[None, Some(follow)])
}

fn kl(reader: &mut Reader<'_>) -> KlControlConfig {
    let (beta, target, rate) = (reader.share(), reader.share(), reader.share());
    let follow = follow(reader);
    reader.pick(&[
        KlControlConfig::Fixed(beta),
        KlControlConfig::Adaptive(AdaptiveKlConfig { beta, target, horizon: rate }),
        KlControlConfig::Linear(LinearKlConfig { beta, target, learning_rate: rate, beta_min: 1e-6, follow }),
    ])
}

fn budget(reader: &mut Reader<'_>) -> EntropyBudgetConfig {
    let (share, kappa, most, b0) = (reader.share(), reader.share(), reader.share(), reader.share());
    let (low, high) = (reader.number(), reader.number());
    let steps = u64::from(reader.byte() % 4);
    EntropyBudgetConfig {
        lambda: reader.share(),
        learning_rate: reader.share(),
        lambda_max: reader.pick(&[None, Some(most)]),
        wh_range: reader.pick(&[None, Some((low, high))]),
        source: reader.pick(&[BudgetSource::Given(b0), BudgetSource::WarmUp { steps, rho: share }]),
        follow: follow(reader),
        schedule: reader.pick(&[
            BudgetSchedule::Constant,
            BudgetSchedule::RewardStdUsage { share, total_steps: steps * 10 },
            BudgetSchedule::Exponential { alpha: share, total_steps: steps },
            BudgetSchedule::Plateau { decay: share, min_delta: b0, patience: steps, kappa, budget_min: most },
        ]),
        guard: reader.pick(&[CollapseGuard::Off, CollapseGuard::On]),
    }
}
