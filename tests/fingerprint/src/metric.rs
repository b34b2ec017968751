//! Stage 6.

use tokenwise::{
    divergence::KlInput,
    loss::DualClip,
    metric::{
        self, Analysis, AnalysisInput, ClipConfig, ClipFractions, ExplainedVarianceConfig, ExplainedVarianceInput,
        KlMeans, PairInput, RatioInput,
    },
    Divisor, Spread,
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
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
