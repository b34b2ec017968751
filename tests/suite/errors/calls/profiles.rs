//! The comparison of two sets of conventions.

use tokenwise::{
    advantage::WeightedSum,
    profile::{self, CompareConfig, CompareScratch, ProfileInput},
    Batch, Error, Groups, Layout, Mask, Moments, Profile,
};

use crate::errors::{Call, Ended, Unwritten, Wrong, ABOVE_1, FINITE, NOT_NEGATIVE, SEQUENCES, TOKENS, UNIT};

/// Number of results in the scratch: each twice, and once for the chain.
const TOKEN_SCRATCH: usize = (2 * 15 + 1) * TOKENS;
const SEQUENCE_SCRATCH: usize = (2 * 5 + 1) * SEQUENCES;

/// The output is the list of differences.
fn run(call: &mut Call, batch: &Batch<'_>, groups: &Groups<'_>) -> Ended {
    let names =
        ["rewards", "values", "predictions", "log_probs", "old_log_probs", "ref_log_probs", "rollout_log_probs"];
    let [rewards, values, predictions, log_probs, old_log_probs, ref_log_probs, rollout_log_probs] =
        names.map(|name| call.input(name, TOKENS));
    let scores = call.input("scores", SEQUENCES);
    let input = ProfileInput {
        rewards: &rewards,
        scores: Some(&scores),
        values: Some(&values),
        predictions: Some(&predictions),
        log_probs: &log_probs,
        old_log_probs: &old_log_probs,
        ref_log_probs: Some(&ref_log_probs),
        rollout_log_probs: Some(&rollout_log_probs),
    };
    let config = CompareConfig {
        gamma: call.number("gamma", UNIT),
        lambda: Some(call.number("lambda", UNIT)),
        beta: Some(call.number("beta", FINITE)),
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        dual_clip: Some(call.number("dual_clip", ABOVE_1)),
        value_clip: Some(call.number("value_clip", NOT_NEGATIVE)),
        ..Default::default()
    };
    let scratch = CompareScratch {
        tokens: &mut vec![0.0; call.len("tokens", TOKEN_SCRATCH)],
        sequences: &mut vec![0.0; call.len("sequences", SEQUENCE_SCRATCH)],
        moments: &mut vec![Moments::default(); call.len("moments", groups.count())],
        sums: &mut vec![WeightedSum::default(); call.len("sums", groups.count())],
        keep: &mut vec![false; call.len("keep", TOKENS)],
    };
    let sides = [Profile::Verl0_9_1.conventions(), Profile::OpenRlhf0_11.conventions()];
    let mut told = [f64::UNWRITTEN];
    let result = profile::compare(batch, groups, input, sides, &config, scratch, |difference| {
        told = [difference.difference];
    });
    Ended::new(result).with(&told)
}

pub(super) fn compare(call: &mut Call) -> Ended {
    let batch = call.batch();
    run(call, &batch, &Groups::from_ids(&[0, 1]).unwrap())
}

#[test]
fn groups_of_another_batch() {
    let groups = Groups::from_ids(&[0, 1, 0]).unwrap();
    let error = Error::Length { what: "groups", expected: SEQUENCES, got: 3 };
    let mut call = Call::new(Wrong::Nothing);
    let batch = call.batch();
    run(&mut call, &batch, &groups).refused("compare", error);
}

/// A result that a profile rejects is neither a difference nor an error of the comparison.
#[test]
fn batches_with_few_tokens() {
    let groups = Groups::from_ids(&[0, 1]).unwrap();
    for mask in [[false; TOKENS], [false, false, false, false, true, false]] {
        let layout = Layout::padded(SEQUENCES, TOKENS / SEQUENCES).unwrap();
        let batch = Batch::new(layout, Mask::new(&mask)).unwrap();
        run(&mut Call::new(Wrong::Nothing), &batch, &groups).accepted("compare");
    }
}
