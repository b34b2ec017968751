//! Invalid groups, roles and weights of estimators.

use tokenwise::{advantage::*, Batch, Error, Groups, Layout, Mask, Moments};

use super::{Ended, Unwritten};

/// Two sequences of two slots.
fn batch() -> Batch<'static> {
    let mask = Mask::new(&[true, false, true, true]);
    Batch::new(Layout::packed(&[0, 2, 4]).unwrap(), mask).unwrap()
}

#[test]
fn the_best_of_one() {
    let mut out = [f64::UNWRITTEN; 4];
    for (ids, index, id) in [([1, 1, 0, 2], 2, 0.0), ([3, 0, 0, 0], 0, 3.0)] {
        let groups = Groups::from_ids(&ids).unwrap();
        let (mut moments, mut top) =
            (vec![Moments::UNWRITTEN; groups.count()], vec![TopTwo::default(); groups.count()]);
        let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };
        let result = best_of_group(&groups, &[0.5; 4], &BestOfGroupConfig::default(), scratch, &mut out);
        let must_be = "an id that another sequence has too";
        let error = Error::Entry { what: "groups", index, must_be, got: id };
        Ended::new(result).with(&out).with(&moments).refused("best_of_group", error);
    }
}

#[test]
fn roles_and_scores() {
    let run = |roles: &[u32; 3], scores: &[f64; 3], error: Error| {
        let mut baselines = [RoleBaseline::new(0.5).unwrap(); 2];
        let mut out = [f64::UNWRITTEN; 3];
        let result = role_baseline(RoleInput { roles, scores }, &mut baselines, &mut out);
        Ended::new(result).with(&out).refused("role_baseline", error);
        assert!(baselines.iter().all(|role| role.baseline() == 0.0), "a refused call moved a baseline");
    };
    let role = |index, got| Error::Entry { what: "roles", index, must_be: "below the number of baselines", got };
    run(&[0, 2, 3], &[0.5; 3], role(1, 2.0));
    run(&[0, 1, u32::MAX], &[0.5; 3], role(2, f64::from(u32::MAX)));
    for got in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        run(&[0, 1, 1], &[0.5, got, got], Error::Entry { what: "scores", index: 1, must_be: "finite", got });
    }
}

#[test]
fn weights_of_sources() {
    let groups = Groups::from_ids(&[0, 0]).unwrap();
    for got in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let input = GdpoInput { sources: &[0.5; 6], weights: &[1.0, 1.0, got] };
        let error = Error::Entry { what: "weights", index: 2, must_be: "finite", got };
        let (mut moments, mut out) = ([Moments::UNWRITTEN; 1], [f64::UNWRITTEN; 2]);
        let result = decoupled_scores(&groups, input, &GroupConfig::default(), &mut moments, &mut out);
        Ended::new(result).with(&out).with(&moments).refused("decoupled_scores", error);
        let mut out = [f64::UNWRITTEN; 4];
        let scratch = GdpoScratch { moments: &mut moments, scores: &mut [0.5; 2] };
        let result = gdpo(&batch(), &groups, input, &GdpoConfig::default(), scratch, &mut out);
        Ended::new(result).with(&out).with(&moments).refused("gdpo", error);
    }
    // no source at all is an empty sum
    let (mut moments, mut out) = ([Moments::default(); 1], [f64::UNWRITTEN; 2]);
    let input = GdpoInput { sources: &[], weights: &[] };
    decoupled_scores(&groups, input, &GroupConfig::default(), &mut moments, &mut out).unwrap();
    assert_eq!(out, [0.0; 2]);
}

#[test]
fn columns_of_the_optimal_baseline() {
    // rows of no slots, as many groups as there are sequences
    let ids = [0, 1];
    let groups = Groups::from_ids(&ids).unwrap();
    let batch = Batch::new(Layout::padded(2, 0).unwrap(), Mask::new(&[])).unwrap();
    assert_eq!(optimal_baseline_scratch_len(&batch, &groups), Ok(0));
    let batch = Batch::new(Layout::padded(2, 3).unwrap(), Mask::new(&[true; 6])).unwrap();
    assert_eq!(optimal_baseline_scratch_len(&batch, &groups), Ok(6));
}
