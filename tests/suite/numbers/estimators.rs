//! NaN in the estimators of stage 4.

use tokenwise::advantage::{GroupScale, Singleton};
use tokenwise_tests::{
    generate::{Column, Flat, Random},
    tolerance::assert_bits,
};

use super::world;
use crate::{
    baselines::*,
    case::{Case, Outcome},
    groups::*,
};

/// A NaN score makes its group NaN, and no other.
#[test]
fn nan_stays_in_its_group() {
    fn check<C: Case>(spoils: impl Fn(C::Config) -> bool) {
        for seed in 0..40 {
            let (mut flat, _) = world::<f32>(seed);
            let config = C::config(&mut Random::new(seed));
            let run = |flat: &Flat<f32>| -> Outcome<f32> { C::run(flat, config).unwrap() };
            flat.group_ids = vec![0, 1];
            let clean = run(&flat).sequences.concat();
            flat.outcomes[0] = f32::NAN;
            if C::SEQUENCES_ALONE {
                let apart = run(&flat).sequences.concat();
                let other = |out: &[f32]| out.iter().copied().skip(1).step_by(2).collect::<Vec<f32>>();
                assert_bits("the other group", &other(&apart), &other(&clean));
            }
            flat.group_ids = vec![0, 0];
            let together = run(&flat).sequences.concat();
            assert!(!spoils(config) || together.iter().all(|x| x.is_nan()), "{:?} {config:?}: {together:?}", C::NAME);
        }
    }
    check::<GroupRelativeOverBatch>(|_| true);
    check::<LengthWeightedBaseline>(|_| true);
    check::<GpgAdvantage>(|_| true);
    check::<LeaveOneOutScaled>(|_| true);
    check::<NormalizeScores>(|config| config.mean != tokenwise::advantage::Level::Off);
    check::<MaxRl>(|_| true);
    check::<DecoupledScores>(|(sources, _)| sources > 0);
    // only the best has a value
    check::<BestOfGroup>(|_| false);
    let (mut flat, _) = world::<f32>(0);
    flat.outcomes[0] = f32::NAN;
    let config = BestOfGroup::config(&mut Random::new(0));
    assert!(BestOfGroup::run(&flat, config).unwrap().sequences.concat().iter().any(|x| x.is_nan()));
}

/// Whitening over the batch makes all of it NaN.
#[test]
fn nan_spoils_what_is_whitened() {
    let (mut flat, _) = world::<f64>(5);
    flat.outcomes[0] = f64::NAN;
    flat.group_ids = vec![0, 0];
    let (_, mut config) = Gdpo::config(&mut Random::new(0));
    config.group.scale = GroupScale::StandardDeviation;
    config.group.singleton = Singleton::Zero;
    let mut plus = ReinforcePlusPlusBaseline::config(&mut Random::new(0));
    plus.singleton = Singleton::Zero;
    for outcome in [Gdpo::run(&flat, (1, config)), ReinforcePlusPlusBaseline::run(&flat, plus)] {
        let out = outcome.unwrap().tokens.concat();
        assert!(out.iter().zip(&flat.keep).all(|(x, &keep)| x.is_nan() == keep), "{out:?}");
    }
}

/// A NaN return is in the baseline of every token of its prompt in the same column, and of no other prompt.
#[test]
fn nan_spoils_its_columns() {
    for seed in 0..40 {
        let (mut flat, slot) = world::<f64>(seed);
        let config = OptimalTokenBaseline::config(&mut Random::new(seed));
        flat.group_ids = vec![0, 1];
        let clean = [OptimalTokenBaseline::run(&flat, config), TirOptimalTokenBaseline::run(&flat, config)];
        for column in [Column::Rewards, Column::Weights] {
            let mut spoilt = flat.clone();
            spoilt.columns[column as usize][slot] = f64::NAN;
            let outcomes = [OptimalTokenBaseline::run(&spoilt, config), TirOptimalTokenBaseline::run(&spoilt, config)];
            for (outcome, clean) in outcomes.iter().zip(&clean) {
                let (outcome, clean) = (outcome.as_ref().unwrap(), clean.as_ref().unwrap());
                let from = flat.rows[1].start;
                assert_bits("the other prompt", &outcome.tokens[0][from..], &clean.tokens[0][from..]);
                let spoils = column == Column::Rewards;
                assert_eq!(outcome.tokens[0][slot].is_nan(), spoils, "{column:?}");
                assert_eq!(outcome.tokens[1][slot].is_nan(), spoils, "{column:?}");
            }
            // another sequence that keeps the same column is NaN there too
            spoilt.group_ids = vec![0, 0];
            let together = TirOptimalTokenBaseline::run(&spoilt, config).unwrap();
            let first_of_other = flat.rows[1].clone().find(|&slot| flat.keep[slot]).unwrap();
            assert!(together.tokens[0][slot].is_nan() && together.tokens[0][first_of_other].is_nan(), "{column:?}");
        }
    }
}
