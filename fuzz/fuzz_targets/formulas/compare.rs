//! Two sets of conventions on one batch.

use tokenwise::{advantage::WeightedSum, loss::AggregateMode, profile::*, Batch, Groups, Moments, Profile};

use crate::reader::Reader;

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let group_ids = reader.ids(sequences, 4);
    let Ok(groups) = Groups::from_ids(&group_ids) else { return };
    let Ok(sizes) = compare_scratch_len(batch, &groups) else { return };
    let columns: [Vec<f64>; 7] = core::array::from_fn(|_| reader.numbers(n));
    let [rewards, values, predictions, log_probs, old_log_probs, ref_log_probs, rollout_log_probs] = &columns;
    let scores = reader.numbers(sequences);
    let mut maybe = |column| reader.pick(&[None, Some(column)]);
    let input = ProfileInput {
        rewards,
        scores: maybe(&scores[..]),
        values: maybe(&values[..]),
        predictions: maybe(&predictions[..]),
        log_probs,
        old_log_probs,
        ref_log_probs: maybe(&ref_log_probs[..]),
        rollout_log_probs: maybe(&rollout_log_probs[..]),
    };
    let (share, number) = (reader.share(), reader.number());
    let config = CompareConfig {
        gamma: reader.share(),
        lambda: reader.pick(&[None, Some(share)]),
        beta: reader.pick(&[None, Some(number)]),
        clip_low: reader.share(),
        clip_high: reader.share(),
        dual_clip: reader.pick(&[None, Some(1.0 + share), Some(number)]),
        value_clip: reader.pick(&[None, Some(number)]),
        estimator: reader.pick(&[Estimator::GroupRelative, Estimator::LeaveOneOut, Estimator::Whitened]),
        mode: reader.pick(&[AggregateMode::TokenMean, AggregateMode::TokenSum, AggregateMode::SequenceMeanTokenMean]),
    };
    let sides = [reader.pick(&Profile::ALL), reader.pick(&Profile::ALL)];
    let scratch = CompareScratch {
        tokens: &mut vec![0.0; reader.len(sizes.tokens)],
        sequences: &mut vec![0.0; reader.len(sizes.sequences)],
        moments: &mut vec![Moments::default(); reader.len(sizes.groups)],
        sums: &mut vec![WeightedSum::default(); reader.len(sizes.groups)],
        keep: &mut vec![false; reader.len(sizes.keep)],
    };
    let mut told = 0;
    let result = compare(batch, &groups, input, sides.map(Profile::conventions), &config, scratch, |difference| {
        told += 1;
        assert!(difference.causes().count() > 0, "a difference without a cause");
        assert!(difference.count > 0 || difference.values.iter().any(Result::is_err), "a difference of nothing");
    });
    match result {
        Ok(count) => assert_eq!(count, told),
        Err(_) => assert_eq!(told, 0, "an error after the first difference"),
    }
    assert!(sides[0] != sides[1] || told == 0, "a profile differs from itself");
}
