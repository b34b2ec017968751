//! Stage 7: the controllers follow their formulas, keep their invariants, and continue from a saved state with the same
//! bits.

mod dual_game;
mod replay;

use tokenwise::{control::*, Error};
use tokenwise_tests::generate::Random;

pub(crate) fn schedules() -> [BudgetSchedule; 4] {
    [
        BudgetSchedule::Constant,
        BudgetSchedule::reward_std_usage(200),
        BudgetSchedule::Exponential { alpha: 3.0, total_steps: 100 },
        BudgetSchedule::plateau(0.01, 5),
    ]
}

pub(crate) fn linear_kl(random: &mut Random) -> LinearKlConfig {
    LinearKlConfig {
        beta: random.pick(&[0.0, 1e-3, 0.5]),
        target: random.pick(&[0.0, 0.02, 0.05]),
        learning_rate: random.pick(&[0.01, 0.02, 0.5]),
        beta_min: random.pick(&[0.0, 1e-6, 1e-3]),
        follow: random.pick(&[None, Some(Follow::default()), Some(Follow { length: 3, factor: 1.5 })]),
    }
}

pub(crate) fn entropy_budget(random: &mut Random) -> EntropyBudgetConfig {
    EntropyBudgetConfig {
        lambda: random.pick(&[0.0, 0.1]),
        learning_rate: random.pick(&[0.02, 0.05, 1.0]),
        lambda_max: random.pick(&[None, Some(10.0), Some(0.01)]),
        wh_range: random.pick(&[None, Some((0.0, 0.05))]),
        source: random.pick(&[
            BudgetSource::Given(2.0),
            BudgetSource::WarmUp { steps: 7, rho: 0.3 },
            BudgetSource::WarmUp { steps: 1, rho: 0.6 },
        ]),
        follow: random.pick(&[None, None, Some(Follow::default())]),
        schedule: random.pick(&schedules()),
        guard: random.pick(&[CollapseGuard::Off, CollapseGuard::On]),
    }
}

pub(crate) fn observation(random: &mut Random, step: u64) -> BudgetObservation {
    BudgetObservation {
        step,
        // sometimes without entropy
        wh_sum: random.between(0.0, 5.0) * random.pick(&[1.0, 1.0, 1.0, 1e-4]),
        token_count: random.below(200) as u64 + 1,
        reward_std: random.between(0.0, 0.6),
        reward_sum_mean: random.between(-0.2, 1.0),
    }
}

#[test]
fn prices_stay_in_their_bounds() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (of_kl, of_budget) = (linear_kl(&mut random), entropy_budget(&mut random));
        let (mut kl, mut budget) = (LinearKl::new(&of_kl).unwrap(), EntropyBudget::new(&of_budget).unwrap());
        for step in 0..300 {
            let beta = kl.update(random.between(-0.5, 0.6)).unwrap();
            assert!(beta >= of_kl.beta_min && beta.is_finite(), "seed {seed} step {step}: β {beta}");
            let report = budget.update(&observation(&mut random, step)).unwrap();
            assert!(report.lambda >= 0.0 && report.lambda.is_finite(), "seed {seed} step {step}: λ {}", report.lambda);
            assert!(report.lambda <= of_budget.lambda_max.unwrap_or(f64::INFINITY), "seed {seed} step {step}");
            if let (Some(b), Some(b0), None, false) =
                (report.budget, budget.state().b0, of_budget.follow, report.collapse)
            {
                assert!(b <= b0, "seed {seed} step {step}: B {b} of {b0}");
            }
        }
    }
}

#[test]
fn with_a_constant_budget_the_price_rises_iff_too_much_is_used() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let config = EntropyBudgetConfig {
            lambda: 5.0,
            source: BudgetSource::Given(random.between(0.01, 3.0)),
            ..Default::default()
        };
        let mut budget = EntropyBudget::new(&config).unwrap();
        let before = budget.lambda();
        let report = budget.update(&observation(&mut random, 0)).unwrap();
        let usage = report.usage_ratio.unwrap();
        assert_eq!(report.lambda > before, usage > 1.0, "seed {seed}: usage {usage}");
    }
}

/// The textbook of each schedule, over a short series.
#[test]
fn schedules_are_their_formulas() {
    let given = |schedule| EntropyBudgetConfig { source: BudgetSource::Given(2.0), schedule, ..Default::default() };
    let seen = |step, wh_sum, reward_std, reward_sum_mean| BudgetObservation {
        step,
        wh_sum,
        token_count: 10,
        reward_std,
        reward_sum_mean,
    };

    // 20 steps: σ_max is the larger of the first two deviations
    let mut usage = EntropyBudget::new(&given(BudgetSchedule::reward_std_usage(20))).unwrap();
    let mut budgets = |wh_sum, std| usage.update(&seen(0, wh_sum, std, 0.0)).unwrap().budget.unwrap();
    assert_eq!(budgets(1.0, 0.2), 2.0 * (0.5 * 1.0 + 0.5 * 1.0));
    assert_eq!(budgets(0.5, 0.4), 2.0 * (0.5 * 1.0 + 0.5 * 0.5));
    assert_eq!(budgets(9.0, 0.1), 2.0 * (0.5 * 0.25 + 0.5 * (0.5 / 1.5)));
    assert_eq!(budgets(0.0, 0.8), 2.0 * (0.5 * 1.0 + 0.5 * 1.0));
    assert_eq!(budgets(0.0, 0.0), 2.0 * 0.1);

    // fewer than ten steps: no deviation is the largest, so that it counts 0
    let mut unknown = EntropyBudget::new(&given(BudgetSchedule::reward_std_usage(9))).unwrap();
    assert_eq!(unknown.update(&seen(0, 1.0, 0.2, 0.0)).unwrap().budget, Some(1.0));

    let mut decay = EntropyBudget::new(&given(BudgetSchedule::Exponential { alpha: 2.0, total_steps: 4 })).unwrap();
    for step in 0..6 {
        let got = decay.update(&seen(step, 1.0, 0.0, 0.0)).unwrap().budget.unwrap();
        approx::assert_abs_diff_eq!(got, 2.0 * (-2.0 * step as f64 / 4.0).exp(), epsilon = 1e-15);
    }

    let plateau = BudgetSchedule::Plateau { decay: 0.5, min_delta: 0.1, patience: 2, kappa: 0.5, budget_min: 0.75 };
    let mut plateaus = EntropyBudget::new(&given(plateau)).unwrap();
    let rewards = [(1.0, 2.0), (1.5, 2.0), (1.5, 2.0), (1.5, 2.0), (1.0, 1.0), (1.0, 1.0), (1.0, 0.75), (9.0, 0.75)];
    for (index, (reward, budget)) in rewards.into_iter().enumerate() {
        let report = plateaus.update(&seen(index as u64, 1.0, 0.0, reward)).unwrap();
        assert_eq!(report.budget, Some(budget), "step {index}");
        assert_eq!(report.plateau, index == 4 || index == 6, "step {index}");
    }
}

#[test]
fn a_warm_up_finds_the_first_budget() {
    let config =
        EntropyBudgetConfig { source: BudgetSource::WarmUp { steps: 3, rho: 0.5 }, lambda: 0.25, ..Default::default() };
    let mut budget = EntropyBudget::new(&config).unwrap();
    for (step, wh_sum) in [1.0, 2.0, 6.0].into_iter().enumerate() {
        let report = budget
            .update(&BudgetObservation { step: step as u64, wh_sum, token_count: 4, ..Default::default() })
            .unwrap();
        assert_eq!((report.lambda, report.budget, report.usage_ratio), (0.25, None, None));
        assert_eq!(report.warm_up_finished, step == 2);
    }
    assert_eq!(budget.state().b0, Some(1.5));
    let report =
        budget.update(&BudgetObservation { step: 3, wh_sum: 3.0, token_count: 4, ..Default::default() }).unwrap();
    assert_eq!(
        (report.budget, report.usage_ratio, report.lambda),
        (Some(1.5), Some(2.0), 0.25 + 0.02 * (0.75 - 0.375))
    );
}

#[test]
fn the_first_budget_may_follow_what_is_used() {
    let config = EntropyBudgetConfig {
        source: BudgetSource::Given(1.0),
        follow: Some(Follow { length: 2, factor: 1.5 }),
        ..Default::default()
    };
    let mut budget = EntropyBudget::new(&config).unwrap();
    for (wh_sum, b0) in [(4.0, 1.0), (8.0, 9.0), (2.0, 7.5)] {
        let seen = BudgetObservation { wh_sum, token_count: 1, ..Default::default() };
        assert_eq!(budget.update(&seen).unwrap().budget, Some(b0));
    }
}

#[test]
fn the_guard_acts_from_the_third_step_on() {
    let config = EntropyBudgetConfig {
        lambda: 1.0,
        source: BudgetSource::Given(1.0),
        guard: CollapseGuard::On,
        ..Default::default()
    };
    let mut budget = EntropyBudget::new(&config).unwrap();
    let mut step = |step, wh_sum| {
        let before = budget.lambda();
        let seen = BudgetObservation { step, wh_sum, token_count: 100, ..Default::default() };
        (before, budget.update(&seen).unwrap())
    };
    let (_, early) = step(2, 0.0);
    assert_eq!((early.collapse, early.budget), (false, Some(1.0)));
    let (before, late) = step(3, 0.001);
    assert_eq!((late.collapse, late.budget), (true, Some(0.001)));
    assert_eq!(late.lambda, 0.1 * (before + 0.02 * (0.001 / 100.0 - 1.0 / 100.0)));
    let (_, fine) = step(4, 0.011);
    assert_eq!((fine.collapse, fine.budget), (false, Some(1.0)));
}

#[test]
fn bad_measurements_and_settings_are_refused() {
    let config = EntropyBudgetConfig { source: BudgetSource::Given(1.0), ..Default::default() };
    let mut budget = EntropyBudget::new(&config).unwrap();
    let (before, good) = (budget, BudgetObservation { wh_sum: 1.0, token_count: 2, ..Default::default() });
    for (bad, what) in [
        (BudgetObservation { token_count: 0, ..good }, "token_count"),
        (BudgetObservation { wh_sum: f64::NAN, ..good }, "wh_sum"),
        (BudgetObservation { reward_std: -1.0, ..good }, "reward_std"),
        (BudgetObservation { reward_sum_mean: f64::INFINITY, ..good }, "reward_sum_mean"),
    ] {
        assert_eq!(budget.update(&bad).unwrap_err().parameter(), what);
        assert_eq!(budget, before);
    }
    let plateau = BudgetSchedule::plateau;
    for (bad, what) in [
        (EntropyBudgetConfig { lambda: -1.0, ..config }, "lambda"),
        (EntropyBudgetConfig { learning_rate: 0.0, ..config }, "learning_rate"),
        (EntropyBudgetConfig { lambda_max: Some(f64::NAN), ..config }, "lambda_max"),
        (EntropyBudgetConfig { wh_range: Some((1.0, 0.0)), ..config }, "wh_range"),
        (EntropyBudgetConfig { source: BudgetSource::Given(-1.0), ..config }, "b0"),
        (EntropyBudgetConfig { source: BudgetSource::WarmUp { steps: 0, rho: 0.3 }, ..config }, "steps"),
        (EntropyBudgetConfig { source: BudgetSource::WarmUp { steps: 1, rho: 0.0 }, ..config }, "rho"),
        (EntropyBudgetConfig { schedule: plateau(-1.0, 1), ..config }, "min_delta"),
        (EntropyBudgetConfig { schedule: plateau(0.0, 0), ..config }, "patience"),
        (
            EntropyBudgetConfig { schedule: BudgetSchedule::Exponential { alpha: 1.0, total_steps: 0 }, ..config },
            "total_steps",
        ),
        (
            EntropyBudgetConfig { schedule: BudgetSchedule::RewardStdUsage { share: 1.5, total_steps: 1 }, ..config },
            "share",
        ),
    ] {
        assert_eq!(EntropyBudget::new(&bad).unwrap_err().parameter(), what);
    }
    let state = EntropyBudgetState { lambda: -1.0, ..budget.state() };
    assert!(matches!(EntropyBudget::restore(&config, state), Err(Error::Config { what: "lambda", .. })));
}
