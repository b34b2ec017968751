//! The step that a trainer calls once per batch.

use tokenwise::{
    control::*,
    loss::DualGameLoss,
    metric::{quantile, Histogram, QuantileConfig},
    weight::{TokenWeight, TokenWeightInput},
    Batch, Error, Layout, Mask,
};
use tokenwise_tests::generate::Random;

/// A small batch with holes.
pub(crate) struct Played {
    keep: [bool; 12],
    columns: [Vec<f64>; 5],
    kind: usize,
}

impl Played {
    pub(crate) fn new(random: &mut Random) -> Self {
        let mut keep = [true; 12];
        keep.iter_mut().for_each(|keep| *keep = random.below(4) != 0);
        keep[0] = true;
        let mut column = |low, high| (0..12).map(|_| random.between(low, high)).collect::<Vec<f64>>();
        let columns =
            [column(-3.0, -0.01), column(-3.0, -0.01), column(-2.0, 2.0), column(-1.0, 1.0), column(0.0, 1.0)];
        Self { keep, columns, kind: random.below(3) }
    }

    pub(crate) fn batch(&self) -> Batch<'_> {
        Batch::new(Layout::padded(3, 4).unwrap(), Mask::new(&self.keep)).unwrap()
    }

    pub(crate) fn input(&self) -> DualGameStep<'_, f64> {
        let [old, reference, advantages, rewards, given] = &self.columns;
        DualGameStep {
            old_log_probs: old,
            ref_log_probs: Some(reference),
            advantages,
            rewards,
            weight: [TokenWeight::Plain, TokenWeight::KlGated, TokenWeight::Structural(given)][self.kind],
            last_update: None,
        }
    }

    fn kept(&self) -> Vec<usize> {
        (0..12).filter(|&slot| self.keep[slot]).collect()
    }
}

fn value(report: &DualGameReport, key: &str) -> Option<f64> {
    report.entries().find(|(name, _)| *name == key).map(|(_, value)| value)
}

fn game(b0: f64) -> DualGame {
    let budget = EntropyBudgetConfig { source: BudgetSource::Given(b0), ..Default::default() };
    let kl = KlControlConfig::Linear(LinearKlConfig { beta: 0.5, ..Default::default() });
    DualGame::new(&DualGameRules { kl, budget }).unwrap()
}

#[test]
fn every_key_is_what_its_formula_says() {
    for seed in 0..300 {
        let played = Played::new(&mut Random::new(seed));
        let (mut game, kept) = (game(0.5), played.kept());
        let n = kept.len() as f64;
        let mut scratch = [0.0; 12];
        let (mut of_h, mut of_cov) = (Histogram::default(), Histogram::default());
        let mut last_update = DualGameLoss::default();
        (last_update.clip_fraction_upper, last_update.clip_fraction_lower) = (0.25, 0.125);
        let last_update = Some(last_update);
        let distribution = DualGameDistribution { scratch: &mut scratch, entropy: &mut of_h, covariance: &mut of_cov };
        let input = DualGameStep { last_update, ..played.input() };
        let report = game.step(&played.batch(), input, Some(distribution)).unwrap();

        let [l, l0, a, r, _] = &played.columns;
        let sum = |f: &dyn Fn(usize) -> f64| kept.iter().map(|&slot| f(slot)).sum::<f64>();
        let h = |slot: usize| -l[slot].exp() * l[slot];
        let (mean_a, mean_l) = (sum(&|s| a[s]) / n, sum(&|s| l[s]) / n);
        let cov = |slot: usize| (a[slot] - mean_a) * (l[slot] - mean_l);
        let plain = |slot: usize| l[slot].exp() * (1.0 - l[slot].exp()) * a[slot].abs();
        let mut w = [0.0; 12];
        let weighing =
            TokenWeightInput { log_probs: l, ref_log_probs: Some(l0), advantages: a, weight: played.input().weight };
        tokenwise::weight::token_weights(&played.batch(), weighing, &mut w).unwrap();
        let used = sum(&|s| w[s] * h(s));
        let k3 = sum(&|s| (l0[s] - l[s]).exp() - 1.0 - (l0[s] - l[s])) / n;
        let mean_r = sum(&|s| r[s]) / n;
        let std = |f: &dyn Fn(usize) -> f64| (sum(&|s| f(s) * f(s)) / n).sqrt();
        let of = |f: &dyn Fn(usize) -> f64, level| {
            let values: Vec<f64> = (0..12).map(f).collect();
            quantile(&played.batch(), &values, &QuantileConfig { level }).unwrap()
        };
        let want = [
            ("analysis/entropy_per_token_mean", sum(&h) / n),
            ("analysis/covariance_mean", sum(&cov) / n),
            ("analysis/wH_sum", sum(&|s| plain(s) * h(s))),
            ("analysis/wH_per_token", sum(&|s| plain(s) * h(s)) / n),
            ("analysis/reward_sum_mean", sum(&|s| r[s]) / 3.0),
            ("analysis/H_p50", of(&h, 0.5)),
            ("analysis/H_p90", of(&h, 0.9)),
            ("analysis/cov_p50", of(&cov, 0.5)),
            ("analysis/cov_p90", of(&cov, 0.9)),
            ("analysis/corr", sum(&cov) / n / (std(&|s| a[s] - mean_a) * std(&|s| l[s] - mean_l) + 1e-8)),
            ("dual_game/lambda", (0.02 * (used / n - 0.5 / n)).max(0.0)),
            ("dual_game/beta", 0.5 + 0.01 * (k3 - 0.02)),
            ("dual_game/B_token", 0.5 / n),
            ("dual_game/KL_per_token", k3),
            ("dual_game/usage_ratio", used / 0.5),
            ("dual_game/per_token_budget_Bt", 0.5 / n),
            ("dual_game/wH_per_token", used / n),
            ("dual_game/token_entropy_mean", sum(&h) / n),
            ("dual_game/reward_std", std(&|s| r[s] - mean_r)),
            ("dual_game/token_count", n),
            ("dual_game/clipfrac_upper", 0.25),
            ("dual_game/clipfrac_lower", 0.125),
        ];
        let keys: Vec<&str> = report.entries().map(|(key, _)| key).collect();
        assert_eq!(keys, want.map(|(key, _)| key));
        for (key, want) in want {
            let got = value(&report, key).unwrap();
            let close = approx::relative_eq!(got, want, epsilon = 1e-13, max_relative = 1e-13);
            assert!(close, "seed {seed} {key}: {got} {want}");
        }
        assert_eq!((of_h.count(), of_cov.count()), (kept.len() as u64, kept.len() as u64));
        assert_eq!((report.lambda(), report.beta), (game.lambda(), game.beta()));
    }
}

#[test]
fn what_is_unknown_has_no_key() {
    let played = Played::new(&mut Random::new(1));
    let mut game = DualGame::new(&DualGameRules::default()).unwrap();
    let input = DualGameStep { ref_log_probs: None, ..played.input() };
    let report = game.step(&played.batch(), input, None).unwrap();
    for key in ["analysis/H_p50", "dual_game/B_token", "dual_game/KL_per_token", "dual_game/usage_ratio"] {
        assert_eq!(value(&report, key), None, "{key}");
    }
    assert_eq!(game.beta(), 1e-3);
    for step in 1..10 {
        let report = game.step(&played.batch(), input, None).unwrap();
        assert_eq!((report.step, report.budget.warm_up_finished), (step, step == 9));
    }
    assert!(value(&game.step(&played.batch(), input, None).unwrap(), "dual_game/B_token").is_some());
}

#[test]
fn dropped_slots_do_not_matter() {
    for seed in 0..100 {
        let clean = Played::new(&mut Random::new(seed));
        let mut poisoned = Played { columns: clean.columns.clone(), ..clean };
        for column in &mut poisoned.columns {
            for slot in (0..12).filter(|&slot| !clean.keep[slot]) {
                column[slot] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][slot % 3];
            }
        }
        let run = |played: &Played| {
            let mut scratch = [f64::NAN; 12];
            let (mut entropy, mut covariance) = (Histogram::default(), Histogram::default());
            let distribution =
                DualGameDistribution { scratch: &mut scratch, entropy: &mut entropy, covariance: &mut covariance };
            let report = game(0.5).step(&played.batch(), played.input(), Some(distribution)).unwrap();
            (report, entropy, covariance)
        };
        assert_eq!(run(&poisoned), run(&clean), "seed {seed}");
    }
}

#[test]
fn a_refused_step_leaves_the_game_as_it_was() {
    let played = Played::new(&mut Random::new(3));
    let (mut game, short) = (game(0.5), [0.0; 11]);
    let before = game;
    let none = [false; 12];
    let empty = Batch::new(Layout::padded(3, 4).unwrap(), Mask::new(&none)).unwrap();
    assert_eq!(game.step(&empty, played.input(), None), Err(Error::EmptyMask));
    for (input, what) in [
        (DualGameStep { old_log_probs: &short, ..played.input() }, "old_log_probs"),
        (DualGameStep { ref_log_probs: Some(&short), ..played.input() }, "ref_log_probs"),
        (DualGameStep { advantages: &short, ..played.input() }, "advantages"),
        (DualGameStep { rewards: &short, ..played.input() }, "rewards"),
        (DualGameStep { weight: TokenWeight::Structural(&short), ..played.input() }, "weight"),
        (DualGameStep { rewards: &[f64::NAN; 12], ..played.input() }, "rewards"),
        (DualGameStep { advantages: &[f64::NAN; 12], ..played.input() }, "wh_sum"),
        (
            DualGameStep { ref_log_probs: Some(&[f64::INFINITY; 12]), weight: TokenWeight::Plain, ..played.input() },
            "kl",
        ),
    ] {
        let input = if what == "wh_sum" { DualGameStep { weight: TokenWeight::Plain, ..input } } else { input };
        assert_eq!(game.step(&played.batch(), input, None).unwrap_err().parameter(), what);
    }
    let mut scratch = [0.0; 11];
    let (mut entropy, mut covariance) = (Histogram::default(), Histogram::default());
    let distribution =
        DualGameDistribution { scratch: &mut scratch, entropy: &mut entropy, covariance: &mut covariance };
    assert_eq!(game.step(&played.batch(), played.input(), Some(distribution)).unwrap_err().parameter(), "scratch");
    assert_eq!(game, before);
}
