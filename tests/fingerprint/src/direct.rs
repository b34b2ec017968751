//! Formulas called without their entries, because more is hashed than an entry returns: scratch, seeds above 2⁵³, the
//! length of a scratch slice, and the outputs of a rejected call.

use tokenwise::{
    advantage::{
        self, FactorPrecision, GdpoConfig, GdpoInput, GdpoScratch, GroupConfig, OptimalBaselineConfig,
        OptimalBaselineInput, OptimalBaselineOutput, OptimalBaselineScratch, Singleton, TopTwo, WeightedSum,
        WhitenConfig, ZeroTail,
    },
    loss::{
        self, Aggregate, AggregateMode, BypassConfig, BypassForm, BypassLoss, BypassOutput, ClipCovConfig,
        ClipCovSelectionConfig, EmptyRows, PolicyLossInput, PpoConfig, ReinforceConfig,
    },
    rollout::{
        self, Criterion, CriterionMetrics, RejectionConfig, RejectionOption, RejectionTotals, ResampleConfig,
        RolloutConfig, RolloutInput,
    },
    Batch, Divisor, Groups, Moments, Result, Spread,
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
    shapes::MOST,
};

const SEEDS: [u64; 3] = [0, 7, u64::MAX];
/// Columns of the optimal baselines: as many as fit beside the inputs into a small memory.
const COLUMNS: usize = 400;
const CRITERIA: [Criterion; 11] = [
    Criterion { option: RejectionOption::TokenK1, lower: 0.9, upper: 1.15 },
    Criterion { option: RejectionOption::TokenK2, lower: 0.5, upper: 0.01 },
    Criterion { option: RejectionOption::TokenK3, lower: 0.5, upper: 0.01 },
    Criterion { option: RejectionOption::SeqSumK1, lower: 0.8, upper: 1.3 },
    Criterion { option: RejectionOption::SeqSumK2, lower: 0.5, upper: 0.05 },
    Criterion { option: RejectionOption::SeqSumK3, lower: 0.5, upper: 0.05 },
    Criterion { option: RejectionOption::SeqMeanK1, lower: 0.97, upper: 1.02 },
    Criterion { option: RejectionOption::SeqMeanK2, lower: 0.5, upper: 5e-3 },
    Criterion { option: RejectionOption::SeqMeanK3, lower: 0.5, upper: 5e-3 },
    Criterion { option: RejectionOption::SeqMaxK2, lower: 0.5, upper: 0.02 },
    Criterion { option: RejectionOption::SeqMaxK3, lower: 0.5, upper: 0.02 },
];

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

impl Hashed for BypassLoss {
    fn add_to(&self, hash: &mut Hash) {
        let policy = &self.policy;
        hash.add(&[policy.loss, policy.clip_fraction, policy.clip_fraction_lower, policy.kl]);
        hash.add(&self.mismatch.entries());
        if let Some(weights) = &self.weights {
            weights.entries().for_each(|entry| entry.add_to(hash));
        }
        if let Some(rejection) = &self.rejection {
            hash.add(rejection);
        }
    }
}

fn per_sequence() -> Aggregate<'static> {
    Aggregate {
        mode: AggregateMode::SequenceMeanTokenMean,
        empty_rows: EmptyRows::Counted,
        divisor: Divisor::CountPlusEpsilon,
        ..Default::default()
    }
}

const fn policy_loss<'a, R>(case: &Case<'a, R>) -> PolicyLossInput<'a, R> {
    PolicyLossInput::new(case.log_probs, case.old_log_probs, case.advantages)
}

pub(crate) fn pf_ppo_indices<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let sequences = case.scores.len();
    let (weights, scratch) = (&mut [0.0; 9][..sequences], &mut [0.0; 9][..sequences]);
    for seed in SEEDS {
        for (weight, score) in weights.iter_mut().zip(case.scores) {
            *weight = score.widen().abs();
        }
        let mut indices = [u32::MAX; 20];
        let result = rollout::pf_ppo_indices(weights, &ResampleConfig { seed }, scratch, &mut indices);
        out.record((result, indices));
    }
}

pub(crate) fn clip_cov_selection<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let selected = &mut [false; MOST][..case.batch.tokens()];
    for seed in SEEDS {
        for (ratio, divisor) in [(2e-4, Divisor::Count), (0.1, Divisor::CountPlusEpsilon), (1.0, Divisor::Count)] {
            // bounds with enough candidates to choose from
            let (clip_low, clip_high, lower, upper) = (0.1, 0.15, 0.5, 5.0);
            let clip = ClipCovConfig { clip_low, clip_high, lower, upper, ratio, aggregate: per_sequence(), divisor };
            let config = ClipCovSelectionConfig { clip, seed };
            let result = loss::clip_cov_selection(&case.batch, policy_loss(case), &config, selected);
            out.record((result, &*selected));
        }
    }
}

pub(crate) fn rollout_rejection_metrics<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = RolloutInput { old_log_probs: case.old_log_probs, rollout_log_probs: case.ref_log_probs };
    for divisor in [Divisor::Count, Divisor::CountPlusEpsilon] {
        for criteria in [&CRITERIA[..], &CRITERIA[..1], &[]] {
            let metrics = &mut [CriterionMetrics::default(); 11][..criteria.len()];
            let config = RejectionConfig { criteria, divisor };
            let result = rollout::rollout_rejection_metrics(&case.batch, input, &config, metrics);
            out.record((result, &*metrics));
        }
    }
}

pub(crate) fn bypass_loss<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    let criteria = [
        Criterion { option: RejectionOption::TokenK2, lower: 0.5, upper: 0.02 },
        Criterion { option: RejectionOption::SeqMeanK3, lower: 0.5, upper: 0.05 },
    ];
    for weights in [None, Some(RolloutConfig::default())] {
        for form in [
            BypassForm::PpoClip(PpoConfig::default()),
            BypassForm::Reinforce(ReinforceConfig { aggregate: per_sequence(), ..Default::default() }),
        ] {
            let rejection = RejectionConfig { criteria: &criteria, divisor: Divisor::CountPlusEpsilon };
            let config = BypassConfig { weights, rejection, form, divisor: Divisor::Count };
            let mut per_criterion = [CriterionMetrics::default(); 2];
            let output = BypassOutput { weights: out.b, keep, per_criterion: &mut per_criterion, grad: out.a };
            let result = loss::bypass_loss(&case.batch, policy_loss(case), &config, output);
            out.record((result, &*keep));
        }
    }
}

pub(crate) fn gdpo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let (sequences, moments) = (case.scores.len(), &mut [Moments::default(); 9][..case.groups.count()]);
    // two sources of rewards, the second with much larger numbers
    let mut sources = [R::zero(); 18];
    for (slot, &score) in sources.iter_mut().zip(case.scores) {
        *slot = score;
    }
    for (slot, &score) in sources[sequences..].iter_mut().zip(case.bootstrap) {
        *slot = R::narrow(64.0) * score;
    }
    let verl = WhitenConfig {
        spread: Spread::Sample,
        epsilon: 1e-8,
        place: advantage::EpsilonPlace::InsideRoot,
        divisor: Divisor::CountPlusEpsilon,
        ..Default::default()
    };
    let openrlhf = WhitenConfig {
        spread: Spread::Population,
        place: advantage::EpsilonPlace::FloorVariance,
        divisor: Divisor::Count,
        ..verl
    };
    for whiten in [verl, openrlhf] {
        for factors in [FactorPrecision::Exact, FactorPrecision::Single] {
            for singleton in [Singleton::Zero, Singleton::Raw, Singleton::Undefined] {
                let input = GdpoInput { sources: &sources[..2 * sequences], weights: &[0.7, -0.3] };
                let group = GroupConfig { singleton, ..GroupConfig::default() };
                let scratch = GdpoScratch { moments, scores: out.sequences };
                let config = GdpoConfig { group, factors, whiten };
                let result = advantage::gdpo(&case.batch, &case.groups, input, &config, scratch, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn optimal_token_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    optimal(case, out, advantage::optimal_token_baseline);
}

pub(crate) fn tir_optimal_token_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    optimal(case, out, advantage::tir_optimal_token_baseline);
}

type Optimal<R> = fn(
    &Batch<'_>,
    &Groups<'_>,
    OptimalBaselineInput<'_, R>,
    &OptimalBaselineConfig,
    OptimalBaselineScratch<'_>,
    OptimalBaselineOutput<'_, R>,
) -> Result<()>;

fn optimal<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>, formula: Optimal<R>) {
    for groups in [case.groups, case.paired] {
        let entries = advantage::optimal_baseline_scratch_len(&case.batch, &groups);
        out.record(entries);
        let mut room = [WeightedSum::default(); COLUMNS];
        // the one long row of `f32` does not fit
        let Some(columns) = entries.ok().and_then(|entries| room.get_mut(..entries)) else { continue };
        let lengths = &mut [TopTwo::default(); 9][..groups.count()];
        for is_weights in [None, Some(case.weights)] {
            for zero_tail in [ZeroTail::NoBaseline, ZeroTail::OwnReturn] {
                let input = OptimalBaselineInput::new(case.rewards, case.old_log_probs, case.weights);
                let input = OptimalBaselineInput { is_weights, ..input };
                let config = OptimalBaselineConfig { zero_tail, epsilon: 1e-8 };
                let scratch = OptimalBaselineScratch { columns, lengths };
                let output = OptimalBaselineOutput { advantages: out.a, returns: out.b };
                let result = formula(&case.batch, &groups, input, &config, scratch, output);
                out.record(result);
            }
        }
    }
}
