//! Between sampler and trainer.

use tokenwise::{rollout::*, Batch, Divisor, Groups, Moments};

use crate::reader::{masks, others, tokens, Reader, UNTOUCHED};

const OPTIONS: [RejectionOption; 11] = [
    RejectionOption::TokenK1,
    RejectionOption::TokenK2,
    RejectionOption::TokenK3,
    RejectionOption::SeqSumK1,
    RejectionOption::SeqSumK2,
    RejectionOption::SeqSumK3,
    RejectionOption::SeqMeanK1,
    RejectionOption::SeqMeanK2,
    RejectionOption::SeqMeanK3,
    RejectionOption::SeqMaxK2,
    RejectionOption::SeqMaxK3,
];

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (a, b, len) = (reader.numbers(n), reader.numbers(n), reader.len(n));
    let input = RolloutInput { old_log_probs: &a, rollout_log_probs: &b };
    let (lower, upper) = (reader.share(), reader.share() * 3.0);
    let divisor = reader.pick(&[Divisor::Count, Divisor::CountPlusEpsilon]);
    let unscored = reader.pick(&[Unscored::Nan, Unscored::Ignore]);
    let config = RolloutConfig {
        level: reader.pick(&[RolloutLevel::Token, RolloutLevel::Sequence, RolloutLevel::Geometric]),
        bound: reader.pick(&[
            WeightBound::Unbounded,
            WeightBound::Truncate { upper },
            WeightBound::Zero { lower, upper },
            WeightBound::Clamp { lower, upper },
        ]),
        log_bound: reader.pick(&[LogBound::Unbounded, LogBound::At(20.0), LogBound::At(upper)]),
        normalize: reader.pick(&[BatchNormalize::Off, BatchNormalize::ByLevel, BatchNormalize::Tokens]),
        unscored,
        divisor,
    };
    tokens(batch, len, 1, |out| rollout_weights(batch, input, &config, out).map(drop));
    if let Ok(metrics) = rollout_weight_metrics(batch, input, &config) {
        let _ = metrics.entries().count();
    }
    let config = GateConfig {
        level: reader.pick(&[GateLevel::Off, GateLevel::Token, GateLevel::Sequence]),
        statistic: reader.pick(&[GateStatistic::Ratio, GateStatistic::BinaryKl, GateStatistic::TotalVariation]),
        mode: reader.pick(&[GateMode::Clip, GateMode::Mask]),
        lower: reader.pick(&[0.0, lower]),
        upper,
    };
    tokens(batch, len, 1, |out| rollout_gate(batch, input, &config, out).map(drop));
    let _ = rollout_mismatch(batch, input, divisor).map(|found| found.entries());
    let _ = probability_difference(batch, input).map(|found| found.entries());

    let criteria: Vec<Criterion> = (0..reader.byte() % 3)
        .map(|_| Criterion { option: reader.pick(&OPTIONS), lower: reader.share(), upper: reader.share() * 3.0 })
        .collect();
    let config = RejectionConfig { criteria: &criteria, divisor };
    masks(batch, len, |keep| rollout_rejection(batch, input, &config, keep));
    let mut metrics = vec![CriterionMetrics::default(); reader.len(criteria.len())];
    if rollout_rejection_metrics(batch, input, &config, &mut metrics).is_ok() {
        let _ = metrics.iter().flat_map(CriterionMetrics::entries).count();
    }
    let tau = reader.share();
    masks(batch, len, |keep| kl_mask(batch, input, tau, keep));
    let config = VetoConfig { lower: reader.share(), upper: reader.share() * 3.0 };
    masks(batch, len, |keep| sequence_veto(batch, input, &config, keep));
    let room = reader.len(batch.kept());
    masks(batch, len, |keep| m2po_mask(batch, input, tau, &mut vec![0.0; room], keep));
    masks(batch, len, |keep| high_entropy_mask(batch, &a, lower, keep));
    let c = reader.numbers(n);
    let input = OffPolicyInput { log_probs: &a, old_log_probs: &b, advantages: &c };
    let config = OffPolicyConfig { threshold: tau, unscored };
    masks(batch, len, |keep| off_policy_sequence_mask(batch, input, &config, keep));
    let (ids, eos) = (reader.ids(n, 5), reader.ids(2, 5));
    others(len, true, |keep| response_mask_from_eos(&batch.layout(), &ids, &eos, keep));

    let (scores, rows, seed) = (reader.numbers(sequences), reader.len(sequences), reader.byte().into());
    let group_ids = reader.ids(sequences, 4);
    if let Ok(groups) = Groups::from_ids(&group_ids) {
        let rule = reader.pick(&[
            GroupRule::NotConstant,
            GroupRule::Spread { at_least: lower },
            GroupRule::MeanBetween { low: lower, high: upper },
        ]);
        let mut scratch = vec![Moments::default(); groups.count()];
        others(reader.len(groups.count()), true, |keep| {
            dynamic_sampling_filter(&groups, &scores, &rule, &mut scratch, keep)
        });
    }
    let rule = reader.pick(&[PfPpoRule::Power { power: upper }, PfPpoRule::MaxMin, PfPpoRule::MaxRandom]);
    others(rows, UNTOUCHED, |weights| pf_ppo_weights(&scores, &rule, weights));
    let (mut scratch, draws) = (vec![0.0; rows], usize::from(reader.byte() % 9));
    for weights in [scores.clone(), scores.iter().map(|score| score.abs()).collect()] {
        others(draws, u32::MAX, |indices| pf_ppo_indices(&weights, seed, &mut scratch, indices));
    }
    parse(reader);
}

/// What is left of the bytes, as text.
fn parse(reader: &mut Reader<'_>) {
    let text = String::from_utf8_lossy(reader.0);
    let (options, thresholds) = text.split_once('|').unwrap_or(("token_k1,seq_mean_k3", &text));
    let mut criteria = [Criterion::default(); 4];
    if let Ok(count) = parse_rejection(options, thresholds, &mut criteria) {
        assert!(criteria[..count].iter().all(|found| found.upper > 0.0), "{options:?} {thresholds:?}");
    }
    if let Ok(bound) = parse_weight_bound(thresholds) {
        assert!(matches!(bound, WeightBound::Truncate { .. } | WeightBound::Zero { .. }), "{thresholds:?}");
    }
}
