//! The controllers of the dual game.

use tokenwise::{control::*, metric::Histogram, weight::TokenWeight, Batch};

use crate::reader::Reader;

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let n = batch.tokens();
    let (a, b, c, d, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let reference = reader.pick(&[None, Some(&d[..])]);
    let weight = reader.pick(&[TokenWeight::Plain, TokenWeight::KlGated, TokenWeight::Structural(&d[..])]);
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
