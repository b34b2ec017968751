//! The single pass over the batch that computes the token metrics of TRL.

use super::{summary::Tally, ClipRatios, SamplingMetrics, TrlConfig, TrlInput, TrlLevel, TrlLoss, TrlMetrics};
use crate::{
    divergence::{kl_value, KlConfig, KlEstimator},
    layout::{Batch, Row},
    loss::Clip,
    math::exp,
    metric::{held_of_row, held_token, RatioInput},
    real::Real,
    reduce::{fold_row, row_difference, row_total, Sum},
    simd::multiversion,
    statistics::Extremes,
};

/// Some numbers of a sequence: their sum, how many, and their extremes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Numbers {
    pub(crate) sum: f64,
    pub(crate) count: usize,
    /// The smallest and the largest, if there are any.
    pub(crate) ends: Option<[f64; 2]>,
}

impl Numbers {
    #[inline(always)]
    fn new(sum: f64, numbers: impl Iterator<Item = f64>) -> Self {
        let (mut extremes, mut count) = (Extremes::NONE, 0);
        for x in numbers {
            extremes.add(x);
            count += 1;
        }
        Self { sum, count, ends: (count > 0).then_some([extremes.min, extremes.max]) }
    }

    fn add_to(&self, tally: &mut Tally) {
        tally.sum.add(self.sum);
        tally.count += self.count as u64;
        self.ends.into_iter().flatten().for_each(|x| tally.extremes.add(x));
    }
}

/// What a sequence adds to the token metrics; zeros for inputs that were not given.
#[derive(Clone, Copy, Default)]
pub(crate) struct TrlRow {
    pub(crate) kl: f64,
    pub(crate) entropy: f64,
    /// Units that the clip holds below and above, of so many: tokens, or at sequence level the sequence.
    pub(crate) held: [f64; 2],
    pub(crate) units: usize,
    /// `|δ|` of the tokens that the sampler scored.
    pub(crate) gaps: Numbers,
    pub(crate) weights: Numbers,
}

/// What the clip sees, if the loss has that clip.
pub(crate) fn clipped_ratios<'a, R>(input: &TrlInput<'a, R>) -> Option<RatioInput<'a, R>> {
    let clipped = !matches!(input.loss, Some(TrlLoss::Cispo(_) | TrlLoss::Sapo(_) | TrlLoss::Vespo(_)));
    match (input.log_probs, input.advantages) {
        (Some(log_probs), Some(advantages)) if clipped => {
            Some(RatioInput { log_probs, old_log_probs: input.old_log_probs.unwrap_or(log_probs), advantages })
        }
        _ => None,
    }
}

/// Reads one sequence.
#[inline(always)]
pub(crate) fn trl_row<R: Real>(row: &Row<'_>, input: &TrlInput<'_, R>, config: &TrlConfig, clip: &Clip<R>) -> TrlRow {
    let mut found = TrlRow::default();
    if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
        let k3 = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
        [found.kl] = fold_row(row, [policy, reference], [], |[p, q]| ([], [kl_value(&k3, p - q).widen()]));
    }
    if let Some(entropies) = input.entropies {
        found.entropy = row_total(row, entropies);
    }
    if let Some(ratios) = clipped_ratios(input) {
        let ([low, high, _], units) = match config.level {
            TrlLevel::Token => (held_of_row(row, ratios, clip), row.kept()),
            TrlLevel::Sequence => (held_sequence(row, ratios, clip), 1),
        };
        (found.held, found.units) = ([low, high], units);
    }
    if let (Some(old), Some(rollout)) = (input.old_log_probs, input.rollout_log_probs) {
        let gap = |old: R, rollout: R| (old - rollout).abs().widen();
        let [sum] = fold_row(row, [old, rollout], [], |[old, rollout]| {
            let gap = gap(old, rollout);
            ([], [if gap.is_nan() { 0.0 } else { gap }])
        });
        let pairs = row.of(old).iter().zip(row.of(rollout)).zip(row.keep).filter(|(_, &keep)| keep);
        let gaps = pairs.map(|((&old, &rollout), _)| gap(old, rollout));
        found.gaps = Numbers::new(sum, gaps.filter(|gap| !gap.is_nan()));
    }
    let kept = |slice| {
        let kept = row.of(slice).iter().zip(row.keep).filter(|(_, &keep)| keep);
        kept.map(|(x, _): (&R, _)| x.widen())
    };
    match (input.weights, config.weight_level) {
        (Some(slice), TrlLevel::Token) => found.weights = Numbers::new(row_total(row, slice), kept(slice)),
        (Some(slice), TrlLevel::Sequence) => {
            let first = kept(slice).next();
            found.weights = Numbers::new(first.unwrap_or(0.0), first.into_iter());
        }
        _ => {}
    }
    found
}

/// The accumulator of [`ClipRatios`].
struct Shares {
    low: Sum,
    high: Sum,
    units: f64,
    lows: Extremes,
    highs: Extremes,
}

impl Shares {
    /// Adds a sequence of `units` units: its tokens, or at sequence level one.
    fn add(&mut self, [low, high]: [f64; 2], units: usize) {
        if units == 0 {
            return;
        }
        self.low.add(low);
        self.high.add(high);
        self.units += units as f64;
        self.lows.add(low / units as f64);
        self.highs.add(high / units as f64);
    }

    fn ratios(&self) -> ClipRatios {
        let of = |sum: Sum| if self.units == 0.0 { 0.0 } else { sum.value() / self.units };
        let (low_mean, high_mean) = (of(self.low), of(self.high));
        let known = |x: f64| if self.units == 0.0 { f64::NAN } else { x };
        let (low_min, high_max) = (known(self.lows.min), known(self.highs.max));
        ClipRatios { low_mean, high_mean, region_mean: low_mean + high_mean, low_min, high_max }
    }
}

/// Whether the clip holds the ratio of a sequence; without kept tokens the ratio is 1.
#[inline(always)]
fn held_sequence<R: Real>(row: &Row<'_>, input: RatioInput<'_, R>, clip: &Clip<R>) -> [f64; 3] {
    let Some(first) = row.keep.iter().position(|&keep| keep) else { return [0.0; 3] };
    let sum = row_difference(row, input.log_probs, input.old_log_probs);
    held_token(exp(R::narrow(sum / row.kept() as f64)), row.of(input.advantages)[first], clip)
}

#[multiversion]
pub(super) fn walk<R: Real>(
    batch: &Batch<'_>,
    input: &TrlInput<'_, R>,
    config: &TrlConfig,
    clip: &Clip<R>,
    found: &mut TrlMetrics<'_>,
) {
    let (mut kl, mut entropy) = (Sum::default(), Sum::default());
    let (mut gaps, mut weights) = (Tally::new(), Tally::new());
    let mut shares =
        Shares { low: Sum::default(), high: Sum::default(), units: 0.0, lows: Extremes::NONE, highs: Extremes::NONE };
    for row in batch.rows() {
        let row = trl_row(&row, input, config, clip);
        kl.add(row.kl);
        entropy.add(row.entropy);
        shares.add(row.held, row.units);
        row.gaps.add_to(&mut gaps);
        row.weights.add_to(&mut weights);
    }
    let mean = |sum: Sum| if batch.kept() == 0 { 0.0 } else { sum.value() / batch.kept() as f64 };
    found.kl = input.log_probs.and(input.ref_log_probs).map(|_| mean(kl));
    found.entropy = input.entropies.map(|_| mean(entropy));
    found.clip_ratio = clipped_ratios(input).map(|_| shares.ratios());
    found.sampling = input.old_log_probs.and(input.rollout_log_probs).map(|_| {
        let gaps = gaps.or_zero();
        SamplingMetrics { mean: gaps.mean, max: gaps.max }
    });
    found.importance_sampling_ratio = input.weights.map(|_| weights.or_zero());
}
