//! Stage 5: losses with one ratio or one weight per sequence.

use tokenwise::{
    loss::{
        self, Aggregate, Counts, GlobalCounts, GmpoConfig, GspoConfig, GspoForm, GvpoConfig, LuspoConfig, ToprConfig,
        VespoConfig, VespoLoss,
    },
    Divisor, Moments,
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
    loss::PER_SEQUENCE,
};

impl Hashed for VespoLoss {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.loss, self.phi_mean]);
    }
}

const AGGREGATES: [Aggregate<'static>; 2] = [
    PER_SEQUENCE,
    Aggregate {
        mode: loss::AggregateMode::TokenMean,
        counts: Counts::Local,
        empty_rows: loss::EmptyRows::Excluded,
        divisor: Divisor::Count,
    },
];

pub(crate) fn gspo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for form in [GspoForm::Sequence, GspoForm::Token] {
        for (log_ratio_cap, divisor) in [(None, Divisor::Count), (Some(10.0), Divisor::CountPlusEpsilon)] {
            for aggregate in AGGREGATES {
                for input in case.policy_losses() {
                    // narrow: the mean of many small log-ratios is smaller still
                    let config =
                        GspoConfig { clip_low: 0.01, clip_high: 0.02, form, log_ratio_cap, aggregate, divisor };
                    let result = loss::gspo(&case.batch, input, &config, out.a);
                    out.record(result);
                }
            }
        }
    }
}

pub(crate) fn luspo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for input in case.policy_losses() {
        let result = loss::luspo(&case.batch, input, &LuspoConfig { clip_low: 0.01, clip_high: 0.02 }, out.a);
        out.record(result);
    }
}

pub(crate) fn gmpo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let global = Counts::Global(GlobalCounts { tokens: 1000, sequences: 30, prompts: 7, ranks: 4 });
    for counts in [Counts::Local, global] {
        for divisor in [Divisor::Count, Divisor::CountPlusEpsilon] {
            for input in case.policy_losses() {
                let config = GmpoConfig { clip_low: 0.1, clip_high: 0.15, counts, divisor };
                let result = loss::gmpo(&case.batch, input, &config, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn gvpo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for groups in [case.paired, case.groups] {
        let scratch = &mut [Moments::default(); 9][..groups.count()];
        for input in case.policy_losses() {
            let result = loss::gvpo(&case.batch, &groups, input, &GvpoConfig { beta: 0.3 }, scratch, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn topr<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for aggregate in AGGREGATES {
        for input in case.policy_losses() {
            let config = ToprConfig { positive: 1.5, negative: 0.7, aggregate };
            let result = loss::topr(&case.batch, input, case.scores, &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn vespo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for aggregate in AGGREGATES {
        for input in case.policy_losses() {
            let result = loss::vespo(&case.batch, input, &VespoConfig { aggregate, ..VespoConfig::default() }, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn positive_nll<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for mu in [0.1, 1.0] {
        let result = loss::positive_nll(&case.batch, case.log_probs, case.scores, mu, out.a);
        out.record(result);
    }
}
