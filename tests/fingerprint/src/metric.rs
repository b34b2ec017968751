//! Stage 6.

use tokenwise::{
    divergence::KlInput,
    loss::DualClip,
    metric::{
        self, Analysis, AnalysisInput, ClipConfig, ClipFractions, ExplainedVarianceConfig, ExplainedVarianceInput,
        Histogram, KlMeans, PairInput, RatioInput, RunningMoments, VarianceProxy, VarianceProxyInput,
    },
    Batch, Divisor, Layout, Mask, Result, Spread,
};

use crate::{
    cases::{Case, Out, VocabCase},
    hash::{Hash, Hashed, Value},
    shapes::MOST,
};

const DIVISORS: [Divisor; 2] = [Divisor::Count, Divisor::CountPlusEpsilon];
const SPREADS: [Spread; 2] = [Spread::Population, Spread::Sample];

impl Hashed for Analysis {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.moments);
        hash.add(&self.entries().map(|(_, value)| value));
    }
}

impl Hashed for KlMeans {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.k1, self.abs, self.k2, self.k3]);
    }
}

impl Hashed for ClipFractions {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.clipped, self.low, self.high, self.dual]);
    }
}

impl Hashed for VarianceProxy {
    fn add_to(&self, hash: &mut Hash) {
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

pub(crate) fn mean<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    out.record(DIVISORS.map(|divisor| metric::mean(&case.batch, case.rewards, divisor)));
}

pub(crate) fn variance<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for divisor in DIVISORS {
        out.record(SPREADS.map(|spread| metric::variance(&case.batch, case.rewards, spread, divisor)));
    }
}

pub(crate) fn correlation<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    out.record(metric::correlation(&case.batch, PairInput { x: case.log_probs, y: case.old_log_probs }));
    out.record(metric::correlation(&case.batch, PairInput { x: case.rewards, y: case.values }));
}

pub(crate) fn explained_variance<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (spread, epsilon) in SPREADS.into_iter().zip([1e-5, 0.0]) {
        let input = ExplainedVarianceInput { values: case.log_probs, returns: case.old_log_probs };
        out.record(metric::explained_variance(&case.batch, input, &ExplainedVarianceConfig { epsilon, spread }));
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

pub(crate) fn kl_means<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = KlInput { log_probs: case.log_probs, ref_log_probs: case.ref_log_probs };
    out.record(DIVISORS.map(|divisor| metric::kl_means(&case.batch, input, divisor)));
}

pub(crate) fn clip_fractions<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (dual_clip, divisor) in [DualClip::Off, DualClip::NegativeOnly(1.1), DualClip::BothSigns(3.0)]
        .into_iter()
        .zip([DIVISORS[0], DIVISORS[1], DIVISORS[0]])
    {
        let input =
            RatioInput { log_probs: case.log_probs, old_log_probs: case.old_log_probs, advantages: case.advantages };
        let config = ClipConfig { clip_low: 0.1, clip_high: 0.15, dual_clip, divisor };
        out.record(metric::clip_fractions(&case.batch, input, &config));
    }
}

pub(crate) fn effective_sample_size<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    out.record([case.weights, case.rewards].map(|weights| metric::effective_sample_size(&case.batch, weights)));
}

pub(crate) fn quantile<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for level in [0.0, 0.01, 0.3, 0.5, 0.9, 1.0, -1.0] {
        out.record([case.rewards, case.weights].map(|values| metric::quantile(&case.batch, values, level)));
    }
}

pub(crate) fn row_sums<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let result = metric::row_sums(&case.batch, case.rewards, out.sequences);
    out.record(result);
}

pub(crate) fn row_means<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for divisor in DIVISORS {
        let result = metric::row_means(&case.batch, case.rewards, divisor, out.sequences);
        out.record(result);
    }
}

pub(crate) fn row_normalize<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for floor in [1e-8, 10.0, 0.0] {
        let result = metric::row_normalize(&case.batch, case.rewards, floor, out.a);
        out.record(result);
    }
}

pub(crate) fn variance_proxy<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for weights in [None, Some(case.weights)] {
        for gradient_norm in [0.3, 30.0] {
            let input = VarianceProxyInput {
                old_log_probs: case.old_log_probs,
                sum_pi_squared: case.weights,
                advantages: case.advantages,
                weights,
            };
            out.record(DIVISORS.map(|divisor| metric::variance_proxy(&case.batch, input, gradient_norm, divisor)));
        }
    }
}

pub(crate) fn running_moments<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let mut running = RunningMoments::default();
    for values in [case.scores, &[], &case.bootstrap[..1], case.bootstrap] {
        let result = running.update(values).map(|(mean, std)| [mean, std]);
        out.record((result, running));
    }
}

/// Of logits, all kept: two histograms do not fit beside the many columns of the other cases.
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
