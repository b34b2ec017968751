//! Moments, reports and histograms that can be merged, and the quantities computed from them.

use tokenwise::{
    metric::{self, Analysis, AnalysisInput, Histogram, RunningMoments},
    Batch, CoMoments, Divisor, Layout, Mask, Moments, PairInput, Result, Spread,
};

use crate::{
    cases::{Case, Out, VocabCase},
    hash::{Hash, Hashed, Value},
    shapes::MOST,
};

pub(crate) fn moments<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let found = Moments::of(&case.batch, case.rewards);
    out.record(found);
    let (Ok(mut merged), Ok(other)) = (found, Moments::of(&case.batch, case.values)) else { return };
    merged.merge(&other);
    out.record(merged);
    for divisor in [Divisor::Count, Divisor::CountPlusEpsilon] {
        out.record(merged.mean_by(divisor));
        out.record(merged.variance(Spread::Population, divisor));
        out.record(merged.variance(Spread::Sample, divisor));
    }
}

pub(crate) fn co_moments<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let found = CoMoments::of(&case.batch, PairInput { x: case.rewards, y: case.values });
    out.record(found);
    let other = PairInput { x: case.log_probs, y: case.old_log_probs };
    let (Ok(mut merged), Ok(other)) = (found, CoMoments::of(&case.batch, other)) else {
        return;
    };
    merged.merge(&other);
    out.record(merged);
    out.record([merged.covariance(Spread::Population), merged.covariance(Spread::Sample), merged.correlation()]);
}

impl Hashed for Analysis {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.moments);
        hash.add(&self.entries().map(|(_, value)| value));
    }
}

impl Hashed for RunningMoments {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.count(), self.mean(), self.variance(), self.std()]);
    }
}

impl Hashed for Histogram {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.count());
        hash.add(&[0.0, 0.01, 0.25, 0.75, 0.99, 1.0, 2.0].map(|level| self.quantile(level)));
        hash.add(&[self.p50(), self.p90()]);
    }
}

pub(crate) fn analysis<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = AnalysisInput { old_log_probs: case.old_log_probs, advantages: case.advantages, rewards: case.rewards };
    let found = metric::analysis(&case.batch, input);
    if let Ok(mut merged) = found {
        merged.merge(&merged.clone());
        out.record(merged);
    }
    out.record(found);
}

pub(crate) fn running_moments<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let mut running = RunningMoments::default();
    for values in [case.scores, &[], &case.bootstrap[..1], case.bootstrap] {
        let result = running.update(values).map(|(mean, std)| [mean, std]);
        out.record((result, running));
    }
}

/// Histograms of logits, all kept: two histograms do not fit beside the many columns of the other cases.
pub(crate) fn histogram<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    const ALL: &[bool] = &[true; MOST];
    let add = |histogram: &mut Histogram, values: &[R]| -> Result<()> {
        let batch = Batch::new(Layout::padded(1, values.len())?, Mask::new(&ALL[..values.len()]))?;
        histogram.add(&batch, values)
    };
    let [mut merged, mut other] = [Histogram::default(), Histogram::default()];
    out.record(&merged);
    out.record((add(&mut merged, case.logits), &merged));
    out.record((add(&mut other, case.ref_logits), &other));
    merged.merge(&other);
    out.record(merged);
}
