//! The single pass over the batch that computes the data and update metrics of verl: each sequence is read once.

use super::{
    summary::{tally, Tally, Weighing},
    LengthSummary, Lengths, VerlConfig, VerlInput, VerlMetrics,
};
use crate::{
    divergence::kl_value,
    layout::Batch,
    metric::{explained_by, ExplainedVarianceConfig},
    real::Real,
    reduce::{count, fold_row, row_total, Sum},
    simd::multiversion,
    statistics::CoMoments,
};

/// Like [`aggregate`](crate::loss::aggregate), for values that are only logged.
#[multiversion]
pub(super) fn aggregated<R: Real>(batch: &Batch<'_>, values: &[R], weighing: &Weighing<'_>) -> f64 {
    let mut total = Sum::default();
    for (row, weight) in weighing.plan.all_rows(batch) {
        total.add(weight * row_total(&row, values));
    }
    weighing.total(total)
}

#[multiversion]
pub(super) fn walk<R: Real>(
    batch: &Batch<'_>,
    input: &VerlInput<'_, R>,
    config: &VerlConfig<'_>,
    weighing: &Weighing<'_>,
    found: &mut VerlMetrics<'_>,
) {
    let [mut scores, mut rewards, mut advantages, mut returns, mut values] = [Tally::new(); 5];
    let [mut predictions, mut entropy, mut kl] = [Sum::default(); 3];
    let mut joint = CoMoments::default();
    for (index, (row, weight)) in weighing.plan.all_rows(batch).enumerate() {
        let sum = |slice: &[R]| row_total(&row, slice);
        // an aborted response has no score
        if input.response_lengths.is_some_and(|lengths| lengths.tokens[index] > 0) {
            input.scores.into_iter().for_each(|slice| scores.add(sum(slice)));
            input.rewards.into_iter().for_each(|slice| rewards.add(sum(slice)));
        }
        input.advantages.into_iter().for_each(|slice| {
            advantages.add_row(&row, slice);
        });
        let of_returns = input.returns.map(|slice| returns.add_row(&row, slice));
        let of_values = input.values.map(|slice| values.add_row(&row, slice));
        if let (Some((g, sum_g)), Some((v, sum_v))) = (input.returns.zip(of_returns), input.values.zip(of_values)) {
            joint.merge(&CoMoments::of_row(&row, g, v, sum_g, sum_v));
        }
        input.predictions.into_iter().for_each(|slice| predictions.add(sum(slice)));
        input.entropies.into_iter().for_each(|slice| entropy.add(weight * sum(slice)));
        if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
            let [sum] = fold_row(&row, [policy, reference], [], |[p, q]| ([], [kl_value(&config.kl, p - q).widen()]));
            kl.add(weight * sum);
        }
    }
    let lengths = input.response_lengths;
    found.scores = input.scores.and(lengths).map(|_| scores.summary());
    found.rewards = input.rewards.and(lengths).map(|_| rewards.summary());
    found.advantages = input.advantages.map(|_| advantages.summary());
    found.returns = input.returns.map(|_| returns.summary());
    found.values = input.values.map(|_| values.summary());
    found.explained_variance = input
        .returns
        .and(input.values)
        .map(|_| explained_by(&joint, &ExplainedVarianceConfig::default()).unwrap_or(f64::NAN));
    found.prediction_mean = input.predictions.map(|_| predictions.value() / config.divisor.of(batch.kept() as f64));
    found.entropy_loss = input.entropies.map(|_| weighing.total(entropy));
    found.kl_loss = input.log_probs.and(input.ref_log_probs).map(|_| weighing.total(kl));
    found.kl_coefficient = found.kl_loss.map(|_| config.kl_coefficient);
}

fn length_summary(lengths: Lengths<'_>, selected: impl Fn(u32) -> bool) -> LengthSummary {
    let chosen = || lengths.tokens.iter().copied().filter(|&length| selected(length));
    LengthSummary {
        tokens: tally(chosen().map(f64::from)).summary(),
        clip_ratio: tally(chosen().map(|length| count(length == lengths.limit))).mean(),
    }
}

/// The metrics that need only the lengths.
pub(super) fn of_lengths<'o, R>(input: &VerlInput<'_, R>) -> VerlMetrics<'o> {
    let of = |length: u32| count(length == 0);
    let both = input.response_lengths.zip(input.prompt_lengths);
    VerlMetrics {
        response_length: input.response_lengths.map(|lengths| length_summary(lengths, |_| true)),
        response_length_non_aborted: input.response_lengths.map(|lengths| length_summary(lengths, |length| length > 0)),
        aborted_ratio: input.response_lengths.map(|lengths| tally(lengths.tokens.iter().map(|&n| of(n))).mean()),
        prompt_length: input.prompt_lengths.map(|lengths| length_summary(lengths, |_| true)),
        total_num_tokens: both.map(|(responses, prompts)| {
            let lengths = responses.tokens.iter().chain(prompts.tokens);
            lengths.fold(0_u64, |total, &length| total + u64::from(length)) as f64
        }),
        ..Default::default()
    }
}
