//! Moments and what is made of them.

use tokenwise::{CoMoments, Divisor, Moments, Spread};

use crate::{
    cases::{Case, Out},
    hash::Value,
};

#[allow(clippy::needless_borrows_for_generic_args, reason = "with feature small a result on wasm32 cannot be copied")]
pub(crate) fn moments<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let found = Moments::of(&case.batch, case.rewards);
    out.record(&found);
    let (Ok(mut merged), Ok(other)) = (found, Moments::of(&case.batch, case.values)) else { return };
    merged.merge(&other);
    out.record(merged);
    for divisor in [Divisor::Count, Divisor::CountPlusEpsilon] {
        out.record(merged.mean_by(divisor));
        out.record(merged.variance(Spread::Population, divisor));
        out.record(merged.variance(Spread::Sample, divisor));
    }
}

#[allow(clippy::needless_borrows_for_generic_args, reason = "with feature small a result on wasm32 cannot be copied")]
pub(crate) fn co_moments<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let found = CoMoments::of(&case.batch, case.rewards, case.values);
    out.record(&found);
    let (Ok(mut merged), Ok(other)) = (found, CoMoments::of(&case.batch, case.log_probs, case.old_log_probs)) else {
        return;
    };
    merged.merge(&other);
    out.record(merged);
    out.record([merged.covariance(Spread::Population), merged.covariance(Spread::Sample), merged.correlation()]);
}
