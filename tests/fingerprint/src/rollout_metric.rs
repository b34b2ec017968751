//! Between sampler and trainer: what is logged.

use tokenwise::rollout::{
    self, CriterionMetrics, ProbabilityDifference, RejectionConfig, RejectionTotals, RolloutMismatch,
    RolloutWeightMetrics,
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
    rollout::{weight_configs, CRITERIA, DIVISORS},
};

// the names go in too: they say which entries there are

impl Hashed for RolloutWeightMetrics {
    fn add_to(&self, hash: &mut Hash) {
        self.entries().for_each(|entry| entry.add_to(hash));
    }
}

impl Hashed for CriterionMetrics {
    fn add_to(&self, hash: &mut Hash) {
        self.entries().for_each(|entry| entry.add_to(hash));
    }
}

impl Hashed for RejectionTotals {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.entries());
    }
}

impl Hashed for RolloutMismatch {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.entries());
    }
}

impl Hashed for ProbabilityDifference {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.entries());
    }
}

pub(crate) fn rollout_weight_metrics<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for config in weight_configs() {
        out.record(rollout::rollout_weight_metrics(&case.batch, case.rollout(), &config));
    }
}

pub(crate) fn rollout_rejection_metrics<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for divisor in DIVISORS {
        for criteria in [&CRITERIA[..], &CRITERIA[..1], &[]] {
            let metrics = &mut [CriterionMetrics::default(); 11][..criteria.len()];
            let config = RejectionConfig { criteria, divisor };
            let result = rollout::rollout_rejection_metrics(&case.batch, case.rollout(), &config, metrics);
            out.record((result, &*metrics));
        }
    }
}

pub(crate) fn rollout_mismatch<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    out.record(DIVISORS.map(|divisor| rollout::rollout_mismatch(&case.batch, case.rollout(), divisor)));
}

pub(crate) fn probability_difference<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    out.record(rollout::probability_difference(&case.batch, case.rollout()));
}
