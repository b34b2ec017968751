//! Stage 6.

use tokenwise::{
    divergence::KlInput,
    loss::{DualClip, PolicyLoss, ValueLoss},
    metric::*,
    rollout::{Criterion, CriterionMetrics, RejectionConfig, RolloutConfig},
    Batch, Groups,
};

use crate::reader::{others, tokens, Reader, UNTOUCHED};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (a, b, c, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let (rows, level) = (reader.len(sequences), reader.share());
    let divisor = reader.pick(&[Divisor::Count, Divisor::CountPlusEpsilon]);
    let _ = mean(batch, &a, divisor);
    let _ = variance(batch, &a, Spread::Sample, divisor);
    let _ = correlation(batch, PairInput { x: &a, y: &b });
    let input = ExplainedVarianceInput { values: &a, returns: &b };
    let _ = explained_variance(batch, input, &ExplainedVarianceConfig { epsilon: level, ..Default::default() });
    let _ = kl_means(batch, KlInput { log_probs: &a, ref_log_probs: &b }, divisor);
    let dual = 1.0 + reader.share();
    let dual_clip = reader.pick(&[DualClip::Off, DualClip::NegativeOnly(dual), DualClip::BothSigns(dual)]);
    let input = RatioInput { log_probs: &a, old_log_probs: &b, advantages: &c };
    let _ = clip_fractions(batch, input, &ClipConfig { dual_clip, ..Default::default() });
    let input = AnalysisInput { old_log_probs: &a, advantages: &b, rewards: &c };
    if let Ok(mut result) = analysis(batch, input) {
        let other = result;
        result.merge(&other);
        let _ = result.entries();
    }

    let _ = effective_sample_size(batch, &a);
    let exact = quantile(batch, &a, level);
    let mut histogram = Histogram::default();
    if histogram.add(batch, &a).is_ok() {
        assert_eq!(histogram.quantile(level).is_ok(), exact.is_ok());
        let other = histogram.clone();
        histogram.merge(&other);
        assert_eq!(histogram.count(), 2 * batch.kept() as u64);
        let _ = (histogram.p50(), histogram.p90());
    }
    others(rows, UNTOUCHED, |out| row_sums(batch, &a, out));
    others(rows, UNTOUCHED, |out| row_means(batch, &a, divisor, out));
    tokens(batch, len, 1, |out| row_normalize(batch, &a, level, out));
    let weights = reader.pick(&[None, Some(&a[..])]);
    let input = VarianceProxyInput { old_log_probs: &a, sum_pi_squared: &b, advantages: &c, weights };
    let _ = variance_proxy(batch, input, reader.number(), divisor).map(|found| found.entries());
    let mut running = RunningMoments::default();
    for values in [&a, &b] {
        assert_eq!(running.update(values).is_ok(), !values.is_empty());
    }
    sets(reader, batch, [&a, &b, &c]);
}

/// All that a framework logs.
fn sets(reader: &mut Reader<'_>, batch: &Batch<'_>, [a, b, c]: [&[f64]; 3]) {
    let sequences = batch.sequences();
    let (lengths, scores) = (reader.ids(sequences, 5), reader.numbers(sequences));
    let flags: Vec<bool> = reader.ids(sequences, 2).into_iter().map(|flag| flag == 1).collect();
    let lengths_of = Some(Lengths { tokens: &lengths, limit: 3 });
    let mut any = |slice| reader.pick(&[None, Some(slice)]);
    let input = VerlInput {
        scores: any(a),
        rewards: any(b),
        advantages: any(c),
        returns: any(a),
        values: any(b),
        predictions: any(c),
        response_lengths: lengths_of,
        prompt_lengths: lengths_of,
        log_probs: any(a),
        ref_log_probs: any(b),
        old_log_probs: any(c),
        rollout_log_probs: any(a),
        old_entropies: any(b),
        entropies: any(c),
        sum_pi_squared: any(a),
        weights: any(b),
        gradient_norm: Some(0.5),
        policy_loss: Some(PolicyLoss::default()),
        value_loss: Some(ValueLoss::default()),
        reward_kl: None,
        mask_before_rejection: None,
    };
    let config = VerlConfig {
        rollout_weights: Some(RolloutConfig::default()),
        rejection: Some(RejectionConfig { criteria: &[Criterion::default()], ..Default::default() }),
        ..Default::default()
    };
    if let Ok(found) = verl_metrics(batch, input, &config, &mut [CriterionMetrics::default()]) {
        for (key, x) in found.entries() {
            assert!(Reduction::of_key(key, true).of(&[x, 1.0]).is_ok());
        }
    }
    let ids = reader.ids(sequences, sequences.min(255) as u8);
    let Ok(groups) = Groups::from_ids(&ids) else { return };
    let (mut scratch, mut per_source) = (vec![Moments::default(); groups.count()], [RewardSource::default()]);
    let mut any = |slice| reader.pick(&[None, Some(slice)]);
    let input = TrlInput {
        log_probs: any(a),
        old_log_probs: any(b),
        ref_log_probs: any(c),
        rollout_log_probs: any(a),
        weights: any(b),
        advantages: any(c),
        entropies: any(a),
        loss: None,
        rewards: Some(TrlRewards { groups, sources: &scores, source_weights: &[1.0] }),
        completion_lengths: Some(&lengths),
        truncated: Some(&flags),
        prompt_lengths: Some(&lengths),
    };
    let level = reader.pick(&[TrlLevel::Token, TrlLevel::Sequence]);
    let output = TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
    let config = TrlConfig { level, weight_level: level, ..Default::default() };
    let _ = trl_metrics(batch, input, &config, output).map(|found| found.entries().count());
    let mut any = |slice| reader.pick(&[None, Some(slice)]);
    let input = OpenRlhfInput {
        log_probs: any(a),
        ref_log_probs: any(b),
        entropies: any(c),
        rewards: any(a),
        predictions: any(b),
        scores: Some(&scores),
        groups: Some(groups),
        total_lengths: lengths_of,
        truncated: Some(&flags),
        ..Default::default()
    };
    let config = OpenRlhfConfig { kl_use: reader.pick(&[KlUse::Reward, KlUse::Loss]), ..Default::default() };
    let _ = openrlhf_metrics(batch, input, &config, &mut scratch).map(|found| found.entries().count());
}
