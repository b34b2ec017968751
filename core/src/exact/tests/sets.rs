//! What frameworks log, over ranks.

use super::*;
use crate::{
    loss::{Aggregate, AggregateMode, EmptyRows},
    metric::{
        openrlhf_metrics, trl_metrics, variance_proxy, KlUse, OpenRlhfInput, RewardSource, TrlInput, TrlLevel,
        TrlOutput, TrlRewards, TrlScale, VarianceProxyConfig, VarianceProxyInput,
    },
    rollout::{
        rollout_rejection_metrics, rollout_weight_metrics, rollout_weights, BatchNormalize, Criterion,
        CriterionMetrics, RejectionConfig, RejectionOption, RolloutConfig, RolloutInput, RolloutLevel, WeightBound,
    },
    Divisor, Groups,
};

/// Every column of TRL's metrics, from four, with one reward function.
pub(super) fn trl_input<'a>(
    [a, b, c, d]: [&'a [f32]; 4],
    ids: &'a [u32],
    scores: &'a [f32],
    lengths: &'a [u32],
) -> TrlInput<'a, f32> {
    let groups = Groups::from_ids(ids).unwrap();
    TrlInput {
        log_probs: Some(a),
        old_log_probs: Some(b),
        ref_log_probs: Some(c),
        rollout_log_probs: Some(d),
        weights: Some(c),
        advantages: Some(d),
        entropies: Some(b),
        rewards: Some(TrlRewards { groups, sources: scores, source_weights: &[0.5] }),
        completion_lengths: Some(lengths),
        prompt_lengths: Some(lengths),
        ..Default::default()
    }
}

/// Every column of OpenRLHF's metrics, from four.
pub(super) fn openrlhf_input<'a>(
    [a, b, c, d]: [&'a [f32]; 4],
    ids: &'a [u32],
    scores: &'a [f32],
    lengths: &'a [u32],
) -> OpenRlhfInput<'a, f32> {
    OpenRlhfInput {
        log_probs: Some(a),
        ref_log_probs: Some(b),
        entropies: Some(c),
        rewards: Some(d),
        predictions: Some(a),
        scores: Some(scores),
        groups: Some(Groups::from_ids(ids).unwrap()),
        total_lengths: Some(Lengths { tokens: lengths, limit: 64 }),
        ..Default::default()
    }
}

/// Twelve sequences of 30 slots, three to a prompt; some slots are dropped, and one sequence has none that is kept.
struct Rollouts {
    columns: [Vec<f32>; 4],
    keep: Vec<bool>,
    ids: Vec<u32>,
    scores: Vec<f32>,
    lengths: Vec<u32>,
    truncated: Vec<bool>,
}

impl Rollouts {
    fn new(empty: bool) -> Self {
        let mut random = Random(77);
        let columns = [0; 4].map(|_| (0..360).map(|_| (random.number() as f32).clamp(-2.0, 2.0)).collect());
        let mut keep: Vec<bool> = (0..360).map(|_| random.below(4) > 0).collect();
        keep[90..120].fill(!empty);
        // the first two prompts have equal scores
        let scores = (0..12).map(|i| if i < 6 { 1.0 } else { random.number() as f32 }).collect();
        let lengths = (0..12).map(|_| random.below(31) as u32).collect();
        let truncated = (0..12).map(|_| random.below(3) == 0).collect();
        Self { columns, keep, ids: (0..12).map(|i| i / 3).collect(), scores, lengths, truncated }
    }

    /// Calls `add` for the sequences of each rank: whole prompts, one rank without any.
    fn ranks(&self, mut add: impl FnMut(core::ops::Range<usize>, &Batch<'_>, [&[f32]; 4])) {
        for rows in [0..3, 3..3, 3..12] {
            let slots = rows.start * 30..rows.end * 30;
            let layout = Layout::padded(rows.len(), 30).unwrap();
            let batch = Batch::new(layout, Mask::new(&self.keep[slots.clone()])).unwrap();
            add(rows, &batch, self.columns.each_ref().map(|column| &column[slots.clone()]));
        }
    }

    fn whole(&self) -> (Batch<'_>, [&[f32]; 4]) {
        let batch = Batch::new(Layout::padded(12, 30).unwrap(), Mask::new(&self.keep)).unwrap();
        (batch, self.columns.each_ref().map(Vec::as_slice))
    }
}

fn assert_close(found: impl Iterator<Item = (&'static str, f64)>, expected: impl Iterator<Item = (&'static str, f64)>) {
    let (found, expected): (Vec<_>, Vec<_>) = (found.collect(), expected.collect());
    assert_eq!(found.len(), expected.len());
    for ((key, found), (same, expected)) in found.into_iter().zip(expected) {
        assert_eq!(key, same);
        let close = approx::relative_eq!(found, expected, max_relative = 1e-12, epsilon = 1e-15);
        assert!(close || (found.is_nan() && expected.is_nan()), "{key}: {found} instead of {expected}");
    }
}

#[test]
fn trl_over_ranks_is_the_plain_function() {
    for (level, scale, empty) in [
        (TrlLevel::Token, TrlScale::Group, false),
        (TrlLevel::Token, TrlScale::Batch, true),
        (TrlLevel::Sequence, TrlScale::Group, true),
    ] {
        let all = Rollouts::new(empty);
        let config = TrlConfig { level, weight_level: level, scale, tokens_seen: 5, ..Default::default() };
        let mut state = ExactTrl::default();
        all.ranks(|rows, batch, columns| {
            let mut input =
                trl_input(columns, &all.ids[rows.clone()], &all.scores[rows.clone()], &all.lengths[rows.clone()]);
            // ids start at 0 on every rank
            let ids: Vec<u32> = (0..rows.len() as u32).map(|i| i / 3).collect();
            input.rewards =
                input.rewards.map(|rewards| TrlRewards { groups: Groups::from_ids(&ids).unwrap(), ..rewards });
            input.truncated = Some(&all.truncated[rows]);
            let mut rank = ExactTrl::default();
            rank.update(batch, &input, &config, &mut vec![Moments::default(); ids.len() / 3]).unwrap();
            state.merge(&rank);
        });
        let (batch, columns) = all.whole();
        let mut input = trl_input(columns, &all.ids, &all.scores, &all.lengths);
        input.truncated = Some(&all.truncated);
        let output = TrlOutput { per_source: &mut [RewardSource::default()], scratch: &mut [Moments::default(); 4] };
        let expected = trl_metrics(&batch, input, &config, output).unwrap();
        assert_close(state.metrics(&config).unwrap().entries(), expected.entries());
    }
}

#[test]
fn openrlhf_over_ranks_is_the_plain_function() {
    for (kl_use, empty) in [(KlUse::Reward, false), (KlUse::Loss, true), (KlUse::Reward, true)] {
        let all = Rollouts::new(empty);
        let config = OpenRlhfConfig { kl_use, ..Default::default() };
        let mut state = ExactOpenRlhf::default();
        all.ranks(|rows, batch, columns| {
            let ids: Vec<u32> = (0..rows.len() as u32).map(|i| i / 3).collect();
            let mut input = openrlhf_input(columns, &ids, &all.scores[rows.clone()], &all.lengths[rows.clone()]);
            input.truncated = Some(&all.truncated[rows]);
            let mut rank = ExactOpenRlhf::default();
            rank.update(batch, &input, &config, &mut vec![Moments::default(); ids.len() / 3]).unwrap();
            state.merge(&rank);
        });
        let (batch, columns) = all.whole();
        let mut input = openrlhf_input(columns, &all.ids, &all.scores, &all.lengths);
        input.truncated = Some(&all.truncated);
        let expected = openrlhf_metrics(&batch, input, &config, &mut [Moments::default(); 4]).unwrap();
        assert_close(state.metrics(&config).unwrap().entries(), expected.entries());
    }
}

/// Two columns as the log-probabilities of trainer and sampler.
fn sampled<'a>([a, b, ..]: [&'a [f32]; 4]) -> RolloutInput<'a, f32> {
    RolloutInput { old_log_probs: a, rollout_log_probs: b }
}

#[test]
fn rollout_weights_over_ranks_are_those_of_the_plain_functions() {
    let bounds = [WeightBound::Truncate { upper: 1.5 }, WeightBound::Zero { lower: 0.5, upper: 1.5 }];
    let levels = [RolloutLevel::Token, RolloutLevel::Sequence, RolloutLevel::Geometric];
    let normalize = [BatchNormalize::Off, BatchNormalize::ByLevel, BatchNormalize::Tokens];
    for (level, normalize, empty) in
        levels.into_iter().flat_map(|level| normalize.map(|normalize| (level, normalize, level as u8 == 1)))
    {
        for bound in bounds {
            let all = Rollouts::new(empty);
            let config =
                RolloutConfig { level, normalize, bound, divisor: Divisor::CountPlusEpsilon, ..Default::default() };
            let mut state = ExactRolloutWeights::default();
            all.ranks(|_, batch, columns| {
                let mut rank = ExactRolloutWeights::default();
                rank.update(batch, sampled(columns), &config).unwrap();
                state.merge(&rank);
            });
            let (batch, columns) = all.whole();
            let expected = rollout_weight_metrics(&batch, sampled(columns), &config).unwrap();
            assert_close(state.metrics(&config).unwrap().entries(), expected.entries());
            let mut weights = [9.0; 360];
            let factor = rollout_weights(&batch, sampled(columns), &config, &mut weights).unwrap();
            all.ranks(|rows, batch, columns| {
                let slots = rows.start * 30..rows.end * 30;
                let mut found = vec![9.0; slots.len()];
                let mean = state.weights(batch, sampled(columns), &config, &mut found).unwrap();
                approx::assert_relative_eq!(mean, factor, max_relative = 1e-14);
                for (found, expected) in found.iter().zip(&weights[slots]) {
                    approx::assert_relative_eq!(found, expected, max_relative = 2e-7);
                }
            });
        }
    }
    let nothing = ExactRolloutWeights::default();
    assert_eq!(nothing.metrics(&RolloutConfig::default()), Err(crate::Error::EmptyMask));
}

#[test]
fn rejection_over_ranks_is_the_plain_function() {
    let criteria = RejectionOption::ALL.map(|option| Criterion { option, lower: 0.8, upper: 1.3 });
    for empty in [false, true] {
        let all = Rollouts::new(empty);
        let config = RejectionConfig { criteria: &criteria, divisor: Divisor::CountPlusEpsilon };
        let mut states = criteria.map(|_| ExactCriterion::default());
        let mut together = ExactRejection::default();
        all.ranks(|_, batch, columns| {
            for (state, criterion) in states.iter_mut().zip(&criteria) {
                let mut rank = ExactCriterion::default();
                rank.update(batch, sampled(columns), criterion, config.divisor).unwrap();
                state.merge(&rank);
            }
            let mut rank = ExactRejection::default();
            rank.update(batch, sampled(columns), &config).unwrap();
            together.merge(&rank);
        });
        let (batch, columns) = all.whole();
        let mut expected = [CriterionMetrics::default(); 11];
        let totals = rollout_rejection_metrics(&batch, sampled(columns), &config, &mut expected).unwrap();
        assert_eq!(together.totals(config.divisor).unwrap(), totals);
        for ((state, criterion), expected) in states.iter().zip(&criteria).zip(&expected) {
            assert_close(state.metrics(criterion, config.divisor).unwrap().entries(), expected.entries());
        }
    }
    assert_eq!(ExactRejection::default().totals(Divisor::Count), Err(crate::Error::EmptyMask));
    let nothing = ExactCriterion::default();
    assert_eq!(nothing.metrics(&criteria[0], Divisor::Count), Err(crate::Error::EmptyMask));
}

#[test]
fn variance_proxies_over_ranks_are_the_plain_function() {
    let all = Rollouts::new(true);
    for weighted in [false, true] {
        let input = |[a, b, c, d]: [&'_ [f32]; 4]| -> [Vec<f32>; 4] { [a, b, c, d].map(<[f32]>::to_vec) };
        let config = VarianceProxyConfig { gradient_norm: 0.3, divisor: Divisor::CountPlusEpsilon };
        let of = |columns: &[Vec<f32>; 4], batch: &Batch<'_>, state: &mut ExactVarianceProxy| {
            let [a, b, c, d] = columns;
            let input = VarianceProxyInput { weights: weighted.then_some(&d[..]), ..VarianceProxyInput::new(a, b, c) };
            state.update(batch, input, config.divisor).unwrap();
            (batch.sequences() > 0).then(|| variance_proxy(batch, input, &config).unwrap())
        };
        let mut state = ExactVarianceProxy::default();
        all.ranks(|_, batch, columns| {
            let mut rank = ExactVarianceProxy::default();
            of(&input(columns), batch, &mut rank);
            state.merge(&rank);
        });
        let (batch, columns) = all.whole();
        let expected = of(&input(columns), &batch, &mut ExactVarianceProxy::default()).unwrap();
        assert_close(state.proxy(&config).unwrap().entries().into_iter(), expected.entries().into_iter());
    }
    let config = VarianceProxyConfig { gradient_norm: -1.0, divisor: Divisor::Count };
    assert!(ExactVarianceProxy::default().proxy(&config).is_err());
}

#[test]
fn entropies_and_kl_may_be_aggregated_by_sequences() {
    let modes = [
        AggregateMode::TokenMean,
        AggregateMode::TokenSum,
        AggregateMode::SequenceMeanTokenSum,
        AggregateMode::SequenceMeanTokenSumNorm { scale: 30.0 },
        AggregateMode::SequenceMeanTokenMean,
    ];
    for (mode, empty_rows) in
        modes.into_iter().flat_map(|mode| [EmptyRows::Excluded, EmptyRows::Counted].map(|rows| (mode, rows)))
    {
        let all = Rollouts::new(true);
        let aggregate = Aggregate { mode, empty_rows, divisor: Divisor::CountPlusEpsilon, ..Default::default() };
        let (verl, openrlhf) = (
            VerlConfig { aggregate, ..Default::default() },
            OpenRlhfConfig { aggregate, kl_use: KlUse::Loss, ..Default::default() },
        );
        let of_verl = |[a, b, c, d]: [&'_ [f32]; 4], batch: &Batch<'_>, state: &mut ExactVerl| {
            let input = VerlInput {
                entropies: Some(a),
                old_entropies: Some(b),
                log_probs: Some(c),
                ref_log_probs: Some(d),
                ..Default::default()
            };
            state.update(batch, &input, &verl).unwrap();
            verl_metrics(batch, input, &verl, &mut []).unwrap().entries().collect::<Vec<_>>()
        };
        let of_openrlhf = |[a, b, c, _]: [&'_ [f32]; 4], batch: &Batch<'_>, state: &mut ExactOpenRlhf| {
            let input =
                OpenRlhfInput { entropies: Some(a), log_probs: Some(b), ref_log_probs: Some(c), ..Default::default() };
            state.update(batch, &input, &openrlhf, &mut []).unwrap();
            openrlhf_metrics(batch, input, &openrlhf, &mut []).unwrap().entries().collect::<Vec<_>>()
        };
        let (mut joined_verl, mut joined_openrlhf) = (ExactVerl::default(), ExactOpenRlhf::default());
        all.ranks(|_, batch, columns| {
            let (mut verl, mut openrlhf) = (ExactVerl::default(), ExactOpenRlhf::default());
            of_verl(columns, batch, &mut verl);
            of_openrlhf(columns, batch, &mut openrlhf);
            joined_verl.merge(&verl);
            joined_openrlhf.merge(&openrlhf);
        });
        let (batch, columns) = all.whole();
        let expected = of_verl(columns, &batch, &mut ExactVerl::default());
        assert_close(joined_verl.metrics(&verl).unwrap().entries(), expected.into_iter());
        let expected = of_openrlhf(columns, &batch, &mut ExactOpenRlhf::default());
        assert_close(joined_openrlhf.metrics(&openrlhf).unwrap().entries(), expected.into_iter());
    }
    let (groups, keep) = (Groups::from_ids(&[0]).unwrap(), [true]);
    let mode = AggregateMode::PromptMean { groups, tokens: &[1] };
    let config = VerlConfig { aggregate: Aggregate { mode, ..Default::default() }, ..Default::default() };
    let refused = ExactVerl::default().update::<f32>(&batch_of(&keep), &VerlInput::default(), &config);
    assert!(matches!(refused, Err(crate::Error::Config { what: "aggregate", .. })));
}

#[test]
fn an_input_that_some_batches_had_is_refused() {
    let all = Rollouts::new(false);
    let (batch, [a, ..]) = all.whole();
    let mut trl = ExactTrl::default();
    trl.update(&batch, &TrlInput { entropies: Some(a), ..Default::default() }, &TrlConfig::default(), &mut []).unwrap();
    trl.update(&batch, &TrlInput::<f32>::default(), &TrlConfig::default(), &mut []).unwrap();
    let error = Err(crate::Error::Length { what: "entropies", expected: 24, got: 12 });
    assert_eq!(trl.metrics(&TrlConfig::default()).map(|_| ()), error);
    let (mut openrlhf, config) = (ExactOpenRlhf::default(), OpenRlhfConfig::default());
    let input = OpenRlhfInput { entropies: Some(a), ..Default::default() };
    openrlhf.update(&batch, &input, &config, &mut []).unwrap();
    openrlhf.update(&batch, &OpenRlhfInput::<f32>::default(), &config, &mut []).unwrap();
    assert_eq!(openrlhf.metrics(&config).map(|_| ()), error);
}
