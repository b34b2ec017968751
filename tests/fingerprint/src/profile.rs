//! Two sets of conventions on one batch.

use tokenwise::{
    advantage::WeightedSum,
    profile::{self, compare_scratch_len, CompareConfig, CompareScratch, Estimator, ProfileInput},
    Batch, Groups, Layout, Mask, Moments, Profile,
};

use crate::{
    cases::{Case, Out},
    hash::Value,
};

/// Slots of a batch whose scratch fits into a small memory.
const SLOTS: usize = 16;
const TOKENS: usize = 31 * SLOTS;
const SEQUENCES: usize = 2;

pub(crate) fn compare<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    // the last slots of a case, as two rows: rows of all lengths end there, and their mask has holes
    let len = case.batch.tokens().min(SLOTS) / SEQUENCES;
    let at = case.batch.tokens() - len * SEQUENCES..case.batch.tokens();
    let keep = &case.batch.mask().as_slice()[at.clone()];
    let Ok(layout) = Layout::padded(SEQUENCES, len) else { return };
    let (Ok(batch), Ok(groups)) = (Batch::new(layout, Mask::new(keep)), Groups::from_ids(&[1, 0])) else { return };
    let pair = Groups::from_ids(&[0, 0]);
    let of = |column: &mut &[R]| *column = &column[at.clone()];
    let mut columns = [
        case.rewards,
        case.values,
        case.advantages,
        case.log_probs,
        case.old_log_probs,
        case.ref_log_probs,
        case.weights,
    ];
    columns.iter_mut().for_each(of);
    let [rewards, values, predictions, log_probs, old_log_probs, ref_log_probs, rollout_log_probs] = columns;
    let scores = [R::one(), R::narrow(-0.3)];
    let (mut tokens, mut sequences) = ([R::zero(); TOKENS], [R::zero(); 11 * SEQUENCES]);
    let (mut moments, mut sums) = ([Moments::default(); SEQUENCES], [WeightedSum::default(); SEQUENCES]);
    let mut slots = [false; SLOTS];
    for groups in [Ok(groups), pair].into_iter().flatten() {
        let Ok(sizes) = compare_scratch_len(&batch, &groups) else { return };
        for (estimator, rollout_log_probs) in
            [(Estimator::GroupRelative, None), (Estimator::Whitened, Some(rollout_log_probs))]
        {
            for [a, b] in [
                [Profile::Paper, Profile::Verl0_9_1],
                [Profile::Verl0_9_1, Profile::Trl1_16],
                [Profile::Trl1_16, Profile::OpenRlhf0_11],
            ] {
                let input = ProfileInput {
                    rewards,
                    scores: Some(&scores),
                    values: Some(values),
                    predictions: Some(predictions),
                    log_probs,
                    old_log_probs,
                    ref_log_probs: Some(ref_log_probs),
                    rollout_log_probs,
                };
                let scratch = CompareScratch {
                    tokens: &mut tokens[..sizes.tokens],
                    sequences: &mut sequences[..sizes.sequences],
                    moments: &mut moments[..sizes.groups],
                    sums: &mut sums[..sizes.groups],
                    keep: &mut slots[..sizes.keep],
                };
                let config = CompareConfig { gamma: 0.9, estimator, ..CompareConfig::default() };
                let sides = [a.conventions(), b.conventions()];
                let result = profile::compare(&batch, &groups, input, sides, &config, scratch, |told| {
                    out.record((told.quantity.name(), (told.index, told.values)));
                    out.record((told.difference, told.count));
                    told.causes().for_each(|cause| out.record(cause.convention.name()));
                });
                out.record(result);
            }
        }
    }
}
