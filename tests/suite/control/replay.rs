//! A controller restored from a saved state gives the same results as the one that was saved.

use serde::{de::DeserializeOwned, Serialize};
use tokenwise::{control::*, Real};
use tokenwise_tests::generate::Random;

use super::{dual_game::Played, entropy_budget, linear_kl, observation};

const STEPS: u64 = 100_000;

/// Written and read.
fn copied<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// Runs `step` to the middle, writes the machine, and runs both it and the one read to the end.
fn replays<T: Serialize + DeserializeOwned>(mut machine: T, mut step: impl FnMut(&mut T, u64) -> Vec<f64>) {
    for i in 0..STEPS / 2 {
        step(&mut machine, i);
    }
    let mut again = copied(&machine);
    for i in STEPS / 2..STEPS {
        let bits = |numbers: Vec<f64>| numbers.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(step(&mut machine, i)), bits(step(&mut again, i)), "step {i}");
    }
}

#[test]
fn of_the_prices_of_kl() {
    for seed in 0..4 {
        let kl = |i: u64| Random::new(seed << 32 | i).between(0.0, 0.1);
        let linear = LinearKl::new(&linear_kl(&mut Random::new(seed))).unwrap();
        replays(linear, |machine, i| vec![machine.update(kl(i)).unwrap(), machine.target()]);
        let adaptive = AdaptiveKl::new(&AdaptiveKlConfig { target: 0.05, ..Default::default() }).unwrap();
        replays(adaptive, |machine, i| vec![machine.update(kl(i), 64).unwrap()]);
        replays(FixedKl::new(0.3).unwrap(), |machine, i| vec![machine.update(kl(i), 64).unwrap()]);
    }
}

#[test]
fn of_the_entropy_budget() {
    for seed in 0..12 {
        let budget = EntropyBudget::new(&entropy_budget(&mut Random::new(seed))).unwrap();
        replays(budget, |machine, i| {
            let report = machine.update(&observation(&mut Random::new(seed << 32 | i), i)).unwrap();
            let flags =
                [report.warm_up_finished, report.plateau, report.collapse].map(|flag| f64::from(u8::from(flag)));
            let known = [report.budget, report.usage_ratio].map(|number| number.unwrap_or(-1.0));
            [&[report.lambda][..], &known, &flags].concat()
        });
    }
}

#[test]
fn of_the_dual_game() {
    for seed in 0..2 {
        let rules = DualGameRules { budget: entropy_budget(&mut Random::new(seed)), ..Default::default() };
        let game = DualGame::new(&rules).unwrap();
        replays(game, |machine, i| {
            let played = Played::new(&mut Random::new(seed << 32 | i));
            let report = machine.step(&played.batch(), played.input(), None).unwrap();
            report.entries().map(|(_, value)| value.widen()).collect()
        });
    }
}

/// The state by itself, with the config from elsewhere.
#[test]
fn of_a_state_alone() {
    let rules = DualGameRules::default();
    let mut game = DualGame::new(&rules).unwrap();
    for i in 0..50 {
        let played = Played::new(&mut Random::new(i));
        game.step(&played.batch(), played.input(), None).unwrap();
    }
    assert_eq!(DualGame::restore(&copied(&rules), copied(&game.state())), Ok(game));
    assert_eq!(copied(&game), game);
}

#[test]
fn a_broken_state_is_not_read() {
    let game = DualGame::new(&DualGameRules::default()).unwrap();
    let text = serde_json::to_string(&game).unwrap();
    let broken = text.replace("\"state\":{\"lambda\":0.0", "\"state\":{\"lambda\":-1.0");
    let broken = broken.replace("\"budget\":{\"lambda\":0.0,\"b0\"", "\"budget\":{\"lambda\":-1.0,\"b0\"");
    assert_ne!(broken, text);
    assert!(serde_json::from_str::<DualGame>(&broken).is_err());
}
