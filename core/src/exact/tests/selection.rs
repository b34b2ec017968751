//! Order statistics over ranks.

use super::*;
use crate::{
    loss::{
        clip_cov_selection, kl_cov, Aggregate, ClipCovConfig, ClipCovSelectionConfig, Counts, GlobalCounts,
        KlCovConfig, PolicyLossInput,
    },
    rollout::{m2po_mask, M2poConfig, RolloutInput},
};

#[test]
fn selection_equals_sorting() {
    let mut random = Random(31);
    let lengths: &[usize] = if cfg!(miri) { &[1, 9] } else { &[1, 2, 50, 400] };
    for &len in lengths {
        let values: Vec<f64> = (0..len).map(|_| (random.number() * 8.0).trunc() / 4.0 + random.number()).collect();
        let single: Vec<f32> = values.iter().map(|&x| x as f32).collect();
        let keep: Vec<bool> = (0..len).map(|i| i == 0 || random.below(4) > 0).collect();
        let kept = |values: Vec<f64>| {
            let mut kept: Vec<f64> = values.iter().zip(&keep).filter(|(_, &keep)| keep).map(|(&x, _)| x).collect();
            kept.sort_by(f64::total_cmp);
            kept
        };
        let sorted = kept(values.clone());
        let sorted_single = kept(single.iter().map(|&x| f64::from(x)).collect());
        for rank in [0, sorted.len() / 3, sorted.len() - 1] {
            let half = len / 2;
            let mut selection = Selection::new(KeyBits::Double, rank as u64);
            let found = loop {
                let mut other = selection.clone();
                selection.count(&batch_of(&keep[..half]), &values[..half]).unwrap();
                other.count(&batch_of(&keep[half..]), &values[half..]).unwrap();
                let both: Vec<i64> = selection.counts().iter().zip(other.counts()).map(|(a, b)| a + b).collect();
                selection.set_counts(&both).unwrap();
                if let Some(found) = selection.step().unwrap() {
                    break found;
                }
            };
            assert_eq!(found.to_bits(), sorted[rank].to_bits());
            let before = sorted[..rank].iter().filter(|&&x| x == sorted[rank]).count();
            assert_eq!(selection.ties_before(), before as u64);
            let mut selection = Selection::new(KeyBits::Single, rank as u64);
            let found = loop {
                selection.count(&batch_of(&keep), &single).unwrap();
                if let Some(found) = selection.step().unwrap() {
                    break found;
                }
            };
            assert_eq!(found.to_bits(), sorted_single[rank].to_bits());
        }
        let mut beyond = Selection::new(KeyBits::Double, sorted.len() as u64);
        beyond.count(&batch_of(&keep), &values).unwrap();
        let needed = sorted.len() + 1;
        assert_eq!(beyond.step(), Err(crate::Error::TooFew { what: "rank", needed, got: sorted.len() }));
        assert!(Selection::new(KeyBits::Single, 0).count(&batch_of(&keep), &values).is_err());
    }
}

#[test]
fn kl_cov_over_ranks_chooses_what_one_process_does() {
    let mut random = Random(41);
    for round in 0..if cfg!(miri) { 4 } else { 40 } {
        // few different numbers, so that covariances tie; 64 of them, so that means are exact
        let mut column = |most| (0..64).map(|_| random.below(most) as f64 / 4.0).collect::<Vec<f64>>();
        let (advantages, log_probs, old) = (column(4), column(3), column(5));
        let keep = vec![true; 64];
        let counts = Counts::Global(GlobalCounts { tokens: 64, sequences: 3, ..Default::default() });
        let aggregate = Aggregate { counts, ..Default::default() };
        let config = KlCovConfig { ratio: [0.0, 0.1, 0.37, 1.0][round % 4], aggregate, ..Default::default() };
        let input = |slots: core::ops::Range<usize>| {
            PolicyLossInput::new(&log_probs[slots.clone()], &old[slots.clone()], &advantages[slots])
        };
        let mut expected = vec![0.0; 64];
        kl_cov(&batch_of(&keep), input(0..64), &config, &mut expected).unwrap();

        let ranks = [0..20, 20..20, 20..21, 21..64];
        let mut moments = ExactCoMoments::default();
        for rank in &ranks {
            let pair = PairInput { x: &advantages[rank.clone()], y: &log_probs[rank.clone()] };
            moments.update(&batch_of(&keep[rank.clone()]), pair).unwrap();
        }
        let over_ranks = KlCov::new(&moments);
        let mut covariances = vec![0.0; 64];
        for rank in &ranks {
            let out = &mut covariances[rank.clone()];
            over_ranks.covariances(&batch_of(&keep[rank.clone()]), input(rank.clone()), out).unwrap();
        }
        let mut selection = Selection::new(KeyBits::Double, over_ranks.rank(&config).unwrap());
        let threshold = loop {
            selection.count(&batch_of(&keep), &covariances).unwrap();
            if let Some(found) = selection.step().unwrap() {
                break found;
            }
        };
        let equal = ranks.clone().map(|rank| covariances[rank].iter().filter(|&&x| x == threshold).count() as u64);
        let mut grad = vec![9.0; 64];
        for (index, rank) in ranks.iter().enumerate() {
            let chosen = (threshold, KlCov::ties(&selection, &equal, index));
            let (batch, grad) = (&batch_of(&keep[rank.clone()]), &mut grad[rank.clone()]);
            over_ranks.loss(batch, input(rank.clone()), &config, chosen, grad).unwrap();
        }
        assert_eq!(grad, expected, "{round}");
    }
}

#[test]
fn clip_cov_over_ranks_chooses_what_one_process_does() {
    let mut random = Random(43);
    let mut chosen = [0; 3];
    for round in 0..60 {
        // 64 numbers with few digits, so that means are exact
        let mut column = |most| (0..64).map(|_| random.below(most) as f64 / 4.0).collect::<Vec<f64>>();
        let (advantages, log_probs, old) = (column(9), column(7), column(8));
        let keep = vec![true; 64];
        let ratio = [0.0, 0.1, 1.0][round % 3];
        let clip = ClipCovConfig { lower: 0.05, upper: 0.9, ratio, ..Default::default() };
        let config = ClipCovSelectionConfig { clip, seed: round as u64 };
        let input = |slots: core::ops::Range<usize>| {
            PolicyLossInput::new(&log_probs[slots.clone()], &old[slots.clone()], &advantages[slots])
        };
        let mut expected = vec![false; 64];
        let count = clip_cov_selection(&batch_of(&keep), input(0..64), &config, &mut expected).unwrap();
        chosen[round % 3] += count;

        let ranks = [0..20, 20..20, 20..21, 21..64];
        let mut moments = ExactCoMoments::default();
        for rank in &ranks {
            let pair = PairInput { x: &advantages[rank.clone()], y: &log_probs[rank.clone()] };
            moments.update(&batch_of(&keep[rank.clone()]), pair).unwrap();
        }
        let over_ranks = ClipCov::new(&moments);
        let candidates = ranks
            .clone()
            .map(|rank| over_ranks.candidates(&batch_of(&keep[rank.clone()]), input(rank), &config.clip).unwrap());
        let mut selected = vec![true; 64];
        let mut total = 0;
        for (index, rank) in ranks.iter().enumerate() {
            let (batch, out) = (&batch_of(&keep[rank.clone()]), &mut selected[rank.clone()]);
            total += over_ranks.select(batch, input(rank.clone()), &config, (&candidates, index), out).unwrap();
        }
        assert_eq!(selected, expected, "{round}");
        assert_eq!(total, count);
    }
    // the least number, a tenth, and all candidates
    assert!(chosen[0] == 20 && chosen[1] > 20 && chosen[2] > chosen[1], "{chosen:?}");
}

/// The mask that ranks find together.
fn m2po_over(ranks: &[core::ops::Range<usize>], old: &[f64], rollout: &[f64], keep: &[bool], tau: f64) -> Vec<bool> {
    let input = |slots: &core::ops::Range<usize>| RolloutInput {
        old_log_probs: &old[slots.clone()],
        rollout_log_probs: &rollout[slots.clone()],
    };
    let mut cut = M2po::new(&M2poConfig { tau }).unwrap();
    let mut rounds = 0;
    loop {
        // every rank counts for itself, and the limbs are added as an all-reduce does
        let mut all = vec![0; cut.limbs().len()];
        for rank in ranks {
            let mut here = cut.clone();
            here.count(&batch_of(&keep[rank.clone()]), input(rank)).unwrap();
            all.iter_mut().zip(here.limbs()).for_each(|(all, limb)| *all += limb);
        }
        cut.set_limbs(&all).unwrap();
        rounds += 1;
        if cut.step() {
            break;
        }
    }
    assert!(rounds == 1 || rounds == 16, "{rounds}");
    let equal: Vec<u64> =
        ranks.iter().map(|rank| cut.equal(&batch_of(&keep[rank.clone()]), input(rank)).unwrap()).collect();
    let mut mask = vec![true; keep.len()];
    for (index, rank) in ranks.iter().enumerate() {
        let batch = batch_of(&keep[rank.clone()]);
        cut.mask(&batch, input(rank), cut.surplus(&equal, index), &mut mask[rank.clone()]).unwrap();
    }
    mask
}

#[test]
fn m2po_over_ranks_keeps_what_one_process_does() {
    let mut random = Random(47);
    for round in 0..120 {
        // few different numbers, so that they tie and sums are exact
        let mut column = |most| (0..64).map(|_| random.below(most) as f64 / 8.0).collect::<Vec<f64>>();
        let (old, mut rollout) = (column(6), column(5));
        if round % 5 == 0 {
            rollout[random.below(64)] = f64::NAN;
            rollout[random.below(64)] = f64::INFINITY;
        }
        let keep: Vec<bool> = (0..64).map(|_| round % 7 > 0 && random.below(5) > 0).collect();
        let tau = [1e-9, 0.01, 0.05, 0.2, 10.0][round % 5];
        let batch = batch_of(&keep);
        let (mut scratch, mut expected) = (vec![0.0; batch.kept()], vec![false; 64]);
        let input = RolloutInput { old_log_probs: &old, rollout_log_probs: &rollout };
        m2po_mask(&batch, input, &M2poConfig { tau }, &mut scratch, &mut expected).unwrap();
        for ranks in [&[0..64, 64..64][..], &[0..20, 20..20, 20..21, 21..64]] {
            assert_eq!(m2po_over(ranks, &old, &rollout, &keep, tau), expected, "{round}");
        }
    }
}

#[test]
fn m2po_always_keeps_one_token() {
    let nan = f64::NAN;
    assert_eq!(m2po_over(&[0..1, 1..2], &[0.0, 0.0], &[nan, nan], &[true; 2], 1.0), [false, true]);
    assert_eq!(m2po_over(&[0..1, 1..2], &[0.0, 0.0], &[2.0, 3.0], &[true; 2], 1.0), [true, false]);
    let mut cut = M2po::new(&M2poConfig { tau: 1.0 }).unwrap();
    let mut limbs = cut.limbs().to_vec();
    limbs[71] = -1;
    assert!(matches!(cut.set_limbs(&limbs), Err(crate::Error::Entry { what: "limbs", index: 71, .. })));
    assert!(M2po::new(&M2poConfig { tau: 0.0 }).is_err());
}
