//! Between sampler and trainer: weights, masks, draws. The reference stands in for the sampler.

use tokenwise::{
    rollout::{
        self, BatchNormalize, Criterion, GateConfig, GateLevel, GateMode, GateReport, GateStatistic, GroupRule,
        LogBound, OffPolicyConfig, OffPolicyInput, PfPpoRule, RejectionConfig, RejectionOption, RolloutConfig,
        RolloutInput, RolloutLevel, SamplerMode, Unscored, VetoConfig, WeightBound,
    },
    Divisor, Moments,
};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
    inputs::Random,
    shapes::MOST,
};

pub(crate) const DIVISORS: [Divisor; 2] = [Divisor::Count, Divisor::CountPlusEpsilon];
const LEVELS: [RolloutLevel; 3] = [RolloutLevel::Token, RolloutLevel::Sequence, RolloutLevel::Geometric];
const BOUNDS: [WeightBound; 4] = [
    WeightBound::Unbounded,
    WeightBound::Truncate { upper: 1.1 },
    WeightBound::Zero { lower: 0.9, upper: 1.15 },
    WeightBound::Clamp { lower: 0.9, upper: 1.15 },
];

impl<R> Case<'_, R> {
    pub(crate) const fn rollout(&self) -> RolloutInput<'_, R> {
        RolloutInput { old_log_probs: self.old_log_probs, rollout_log_probs: self.ref_log_probs }
    }
}

impl Hashed for GateReport {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.filtered, self.kl]);
    }
}

impl Hashed for WeightBound {
    fn add_to(&self, hash: &mut Hash) {
        let (kind, lower, upper) = match *self {
            Self::Unbounded => (0_u32, 0.0, 0.0),
            Self::Truncate { upper } => (1, 0.0, upper),
            Self::Zero { lower, upper } => (2, lower, upper),
            Self::Clamp { lower, upper } => (3, lower, upper),
        };
        hash.add(&(kind, [lower, upper]));
    }
}

impl Hashed for Criterion {
    fn add_to(&self, hash: &mut Hash) {
        hash.bytes(self.option.name().as_bytes());
        hash.add(&[self.lower, self.upper]);
    }
}

/// Every level with every bound; the other options vary along.
pub(crate) fn weight_configs() -> impl Iterator<Item = RolloutConfig> {
    LEVELS.into_iter().flat_map(|level| {
        BOUNDS.into_iter().flat_map(move |bound| {
            let usual = RolloutConfig { level, bound, ..RolloutConfig::default() };
            [
                usual,
                RolloutConfig {
                    normalize: BatchNormalize::ByLevel,
                    unscored: Unscored::Ignore,
                    divisor: Divisor::CountPlusEpsilon,
                    ..usual
                },
                RolloutConfig { normalize: BatchNormalize::Tokens, log_bound: LogBound::Unbounded, ..usual },
                RolloutConfig { normalize: BatchNormalize::ByLevel, log_bound: LogBound::At(0.1), ..usual },
            ]
        })
    })
}

pub(crate) fn rollout_weights<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let named =
        [SamplerMode::TokenTruncate, SamplerMode::TokenMask, SamplerMode::SequenceTruncate, SamplerMode::SequenceMask];
    for config in weight_configs().chain(named.map(|mode| RolloutConfig::sampler_mode(mode, 0.9, 1.15))) {
        let result = rollout::rollout_weights(&case.batch, case.rollout(), &config, out.a);
        out.record(result);
    }
}

pub(crate) fn rollout_gate<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for level in [GateLevel::Off, GateLevel::Token, GateLevel::Sequence] {
        for (statistic, lower, upper) in [
            (GateStatistic::Ratio, 0.9, 1.15),
            (GateStatistic::BinaryKl, 0.0, 1e-3),
            (GateStatistic::TotalVariation, 0.0, 0.01),
        ] {
            for mode in [GateMode::Clip, GateMode::Mask] {
                let config = GateConfig { level, statistic, mode, lower, upper };
                let result = rollout::rollout_gate(&case.batch, case.rollout(), &config, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn off_policy_sequence_mask<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    for threshold in [1e-4, 0.02] {
        for unscored in [Unscored::Nan, Unscored::Ignore] {
            let input = OffPolicyInput {
                log_probs: case.log_probs,
                old_log_probs: case.old_log_probs,
                advantages: case.advantages,
            };
            let config = OffPolicyConfig { threshold, unscored };
            let result = rollout::off_policy_sequence_mask(&case.batch, input, &config, keep);
            out.record((result, &*keep));
        }
    }
}

pub(crate) fn kl_mask<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    for tau in [0.0, 1e-3, 0.01] {
        let result = rollout::kl_mask(&case.batch, case.rollout(), tau, keep);
        out.record((result, &*keep));
    }
}

pub(crate) fn sequence_veto<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    for (lower, upper) in [(1e-4, f64::INFINITY), (0.85, 1.2), (0.0, 1.1)] {
        let result = rollout::sequence_veto(&case.batch, case.rollout(), &VetoConfig { lower, upper }, keep);
        out.record((result, &*keep));
    }
}

pub(crate) fn m2po_mask<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    let scratch = &mut [0.0; MOST][..case.batch.kept()];
    for tau in [1e-4, 4e-3, 1.0] {
        let result = rollout::m2po_mask(&case.batch, case.rollout(), tau, scratch, keep);
        out.record((result, &*keep));
    }
}

pub(crate) fn high_entropy_mask<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    for share in [0.0, 0.2, 0.5, 1.0] {
        let result = rollout::high_entropy_mask(&case.batch, case.weights, share, keep);
        out.record((result, &*keep));
    }
}

pub(crate) fn response_mask_from_eos<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let (mut tokens, mut random) = ([0; MOST], Random::new(9));
    let tokens = &mut tokens[..case.batch.tokens()];
    tokens.fill_with(|| random.below(40));
    let keep = &mut [false; MOST][..tokens.len()];
    for eos in [&[][..], &[7], &[1, 2, 3]] {
        let result = rollout::response_mask_from_eos(&case.batch.layout(), tokens, eos, keep);
        out.record((result, &*keep));
    }
}

pub(crate) fn dynamic_sampling_filter<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for groups in [case.groups, case.paired] {
        let scratch = &mut [Moments::default(); 9][..groups.count()];
        let keep = &mut [false; 9][..groups.count()];
        for rule in [
            GroupRule::NotConstant,
            GroupRule::Spread { at_least: 2.0 },
            GroupRule::MeanBetween { low: -0.5, high: 0.5 },
        ] {
            let result = rollout::dynamic_sampling_filter(&groups, case.scores, &rule, scratch, keep);
            out.record((result, &*keep));
        }
    }
}

/// Bounds that some tokens or sequences meet and others do not.
pub(crate) const CRITERIA: [Criterion; 11] = [
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

pub(crate) fn rollout_rejection<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    let mut run = |criteria: &[Criterion], divisor| {
        let config = RejectionConfig { criteria, divisor };
        let result = rollout::rollout_rejection(&case.batch, case.rollout(), &config, keep);
        out.record((result, &*keep));
    };
    for divisor in DIVISORS {
        CRITERIA.chunks(1).chain([&[][..], &CRITERIA[..2]]).for_each(|criteria| run(criteria, divisor));
    }
    run(&[Criterion { lower: 2.0, upper: 1.0, ..CRITERIA[0] }], Divisor::Count);
}

pub(crate) fn parse_rejection<R: Value>(_: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (options, thresholds) in [
        ("token_k1", "0.5_2.0"),
        ("token_k1, seq_mean_k3", "3.1 , 1e-3"),
        ("seq_sum_k1,seq_max_k2,token_k3", "0.1_7,0.3,12"),
        ("token_k4", "1"),
        ("token_k1", "2_1"),
        ("token_k2", "0.1_nan"),
        ("", ""),
    ] {
        let mut criteria = [Criterion::default(); 3];
        let result = rollout::parse_rejection(options, thresholds, &mut criteria);
        out.record((result, criteria));
    }
}

pub(crate) fn parse_weight_bound<R: Value>(_: &Case<'_, R>, out: &mut Out<'_, R>) {
    for text in ["2", " 2.7 ", "0.5_5", "1e-3_1e3", "0.1", "5_0.5", "-1", "a", "1_2_3", ""] {
        out.record(rollout::parse_weight_bound(text));
    }
}

pub(crate) fn pf_ppo_weights<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let weights = &mut [0.0; 9][..case.scores.len()];
    for rule in [
        PfPpoRule::Power { power: 2.0 },
        PfPpoRule::Power { power: 1.0 },
        PfPpoRule::Power { power: 0.7 },
        PfPpoRule::Power { power: 0.0 },
        PfPpoRule::MaxMin,
        PfPpoRule::MaxRandom,
    ] {
        let result = rollout::pf_ppo_weights(case.scores, &rule, weights);
        out.record((result, &*weights));
    }
}

pub(crate) fn pf_ppo_indices<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let sequences = case.scores.len();
    let (weights, scratch) = (&mut [0.0; 9][..sequences], &mut [0.0; 9][..sequences]);
    for seed in [0, 7, u64::MAX] {
        for (weight, score) in weights.iter_mut().zip(case.scores) {
            *weight = score.widen().abs();
        }
        let mut indices = [u32::MAX; 20];
        let result = rollout::pf_ppo_indices(weights, seed, scratch, &mut indices);
        out.record((result, indices));
    }
}
