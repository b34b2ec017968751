//! Which tokens clip_cov_selection chooses.

use tokenwise::{loss::*, Batch, Layout, Mask};
use tokenwise_tests::generate::{Spec, World};

use super::check;
use crate::{
    case::{tokens, Case},
    loss::policy_input,
    naive::covariance_loss,
    naive::covariance_loss::ClipCovSelection,
};

#[test]
fn as_many_as_wanted_of_those_that_may() {
    check(|spec: Spec| {
        let flat = World::<f64>::new(spec).packed();
        let mut random = tokenwise_tests::generate::Random::new(spec.seed ^ 0x5e1);
        let (config, seed) = ClipCovSelection::config(&mut random);
        let (mut selected, mut again) = (vec![true; flat.tokens()], vec![false; flat.tokens()]);
        let chosen = clip_cov_selection(
            &flat.batch(),
            policy_input(&flat),
            &ClipCovSelectionConfig { clip: config, seed },
            &mut selected,
        )
        .unwrap();
        let candidates = covariance_loss::candidates(tokens(&flat), &policy_input(&flat), &config);
        let wanted = ((config.ratio * flat.batch().kept() as f64) as usize).max(1).min(candidates.len());
        assert_eq!(chosen, wanted);
        assert_eq!(selected.iter().filter(|&&yes| yes).count(), wanted);
        for slot in (0..flat.tokens()).filter(|&slot| selected[slot]) {
            assert!(flat.keep[slot], "slot {slot} is dropped");
            assert!(candidates.contains(&slot), "slot {slot} is held by the clip or outside the bounds");
        }
        // the same seed, the same choice
        clip_cov_selection(
            &flat.batch(),
            policy_input(&flat),
            &ClipCovSelectionConfig { clip: config, seed },
            &mut again,
        )
        .unwrap();
        assert_eq!(again, selected);
    });
}

/// Ten candidates, three selected: each one and each pair with the same frequency.
#[test]
fn every_choice_is_as_likely() {
    const SEEDS: u64 = 20_000;
    let batch = Batch::new(Layout::padded(1, 12).unwrap(), Mask::new(&[true; 12])).unwrap();
    // covariances of both signs: the last two are not candidates and only shift the mean
    let mut log_probs = [-1.0; 12];
    let mut advantages = [1.0; 12];
    (log_probs[10], advantages[10]) = (-3.0, 5.0);
    (log_probs[11], advantages[11]) = (-3.0, 5.0);
    let input =
        PolicyLossInput { log_probs: &log_probs, old_log_probs: &log_probs, advantages: &advantages, weights: None };
    let config = ClipCovConfig { lower: -0.5, upper: 5.0, ratio: 0.25, ..Default::default() };
    let mut counts = [[0_u32; 10]; 10];
    for seed in 0..SEEDS {
        let mut selected = [false; 12];
        assert_eq!(
            clip_cov_selection(&batch, input, &ClipCovSelectionConfig { clip: config, seed }, &mut selected).unwrap(),
            3
        );
        for i in (0..10).filter(|&i| selected[i]) {
            for j in (0..10).filter(|&j| selected[j]) {
                counts[i][j] += 1;
            }
        }
    }
    let near = |count: u32, share: f64| {
        let (mean, deviation) = (SEEDS as f64 * share, (SEEDS as f64 * share * (1.0 - share)).sqrt());
        (f64::from(count) - mean).abs() < 5.0 * deviation
    };
    for (i, row) in counts.iter().enumerate() {
        for (j, &count) in row.iter().enumerate() {
            // 3/10, and 3/10 · 2/9
            let share = if i == j { 0.3 } else { 1.0 / 15.0 };
            assert!(near(count, share), "{i} and {j}: {count} of {SEEDS}");
        }
    }
}
