//! Several formulas together on the batch of [`fixture`].

use super::{
    fixture::{batch, input, near},
    *,
};
use crate::{Divisor, MeanConfig};

#[test]
fn the_rejection_metrics_of_verl() {
    let mut criteria = [Criterion::default(); 3];
    parse_rejection("token_k1,seq_mean_k3,seq_max_k2", "0.9_1.12,0.004,0.05", &mut criteria).unwrap();
    let config = RejectionConfig { criteria: &criteria, divisor: Divisor::CountPlusEpsilon };
    let mut metrics = [CriterionMetrics::default(); 3];
    let totals = rollout_rejection_metrics(&batch(), input(), &config, &mut metrics).unwrap();
    near(totals.masked_fraction, 0.6);
    near(totals.seq_masked_fraction, 0.5);
    for (got, expected) in metrics.iter().zip([0.066667, 0.6, 0.333333]) {
        near(got.masked_fraction, expected);
    }
    assert_eq!(metrics[0].entries().count(), 15);
    assert_eq!(metrics[1].entries().count(), 14);
    assert!(metrics[2].entries().all(|(key, _)| key.starts_with("rollout_corr/rollout_rs_seq_max_k2_")));
}

#[test]
fn nothing_kept_is_an_error_and_nothing_is_written() {
    let keep = [false; 20];
    let batch = crate::Batch::new(crate::Layout::padded(4, 5).unwrap(), crate::Mask::new(&keep)).unwrap();
    assert_eq!(rollout_mismatch(&batch, input(), &MeanConfig::default()), Err(crate::Error::EmptyMask));
    assert_eq!(rollout_weight_metrics(&batch, input(), &RolloutConfig::default()), Err(crate::Error::EmptyMask));
    let mut out = [9.0; 20];
    let config = RolloutConfig { normalize: BatchNormalize::ByLevel, ..Default::default() };
    assert_eq!(rollout_weights(&batch, input(), &config, &mut out), Err(crate::Error::EmptyMask));
    assert_eq!(out, [9.0; 20]);
}

#[test]
fn the_masks_on_the_fixture() {
    let (entropies, mut keep) = ([0.5, 0.6, 0.7, 0.8, 0.9].repeat(4), [false; 20]);
    high_entropy_mask(&batch(), &entropies, &HighEntropyConfig { share: 0.4 }, &mut keep).unwrap();
    // the kept entropies sorted: 4 × .5, 4 × .6, 2 × .7, 3 × .8, 2 × .9; position 8.4 is between two of .7
    for (slot, keep) in keep.into_iter().enumerate() {
        assert_eq!(keep, fixture::KEEP[slot] && slot % 5 >= 2, "{slot}");
    }
    let nothing = [false; 20];
    let empty = crate::Batch::new(crate::Layout::padded(4, 5).unwrap(), crate::Mask::new(&nothing)).unwrap();
    high_entropy_mask(&empty, &entropies, &HighEntropyConfig { share: 0.4 }, &mut keep).unwrap();
    assert_eq!(keep, nothing);

    // k = mean (sampler − trainer): −.03, .0125, .04, −.084
    let advantages = [-1.0; 20];
    let input = OffPolicyInput { log_probs: &fixture::OLD, old_log_probs: &fixture::SAMPLER, advantages: &advantages };
    let config = OffPolicyConfig { threshold: 0.02, ..Default::default() };
    off_policy_sequence_mask(&batch(), input, &config, &mut keep).unwrap();
    for (slot, keep) in keep.into_iter().enumerate() {
        assert_eq!(keep, fixture::KEEP[slot] && slot / 5 != 2, "{slot}");
    }
}
