//! Invalid single entries, and fields whose domain depends on another.

use tokenwise::{advantage::*, loss::*, policy::*, reward::*, Batch, Error, Groups, Layout, Mask, Moments};

use super::{Ended, Unwritten};

fn batch() -> Batch<'static> {
    let mask = Mask::new(&[true, false, true, true]);
    Batch::new(Layout::packed(&[0, 2, 4]).unwrap(), mask).unwrap()
}

#[test]
fn token_ids() {
    let vocab = 3;
    let logits = [0.5; 12];
    for (tokens, wrong) in
        [([0, 9, 3, 1], Some((2, 3))), ([u32::MAX, 0, 0, 0], Some((0, u32::MAX))), ([0, 9, 2, 1], None)]
    {
        let error = wrong.map(|(index, id)| Error::TokenId { index, id, vocab });
        let end = |ended: Ended, what| match error {
            Some(error) => ended.refused(what, error),
            None => ended.accepted(what),
        };
        let config = PolicyConfig::default();
        let input = LogProbInput { logits: &logits, vocab, tokens: &tokens };
        let (mut log_probs, mut entropies) = ([f64::UNWRITTEN; 4], [f64::UNWRITTEN; 4]);
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropies };
        let result = log_probs_and_entropy(&batch(), input, &config, output);
        end(Ended::new(result).with(&log_probs).with(&entropies), "log_probs_and_entropy");

        let mut out = [f64::UNWRITTEN; 4];
        let result = token_log_probs(&batch(), input, &config, &mut out);
        end(Ended::new(result).with(&out), "token_log_probs");

        let mut grad = [f64::UNWRITTEN; 12];
        let zeros = [0.0; 4];
        let input = LogitsGradientInput {
            logits: &logits,
            vocab,
            tokens: &tokens,
            grad_log_probs: &zeros,
            grad_entropy: &zeros,
        };
        let result = logits_gradient(&batch(), input, &config, &mut grad);
        end(Ended::new(result).with(&grad), "logits_gradient");
    }
}

#[test]
fn attention_weights() {
    let must_be = "finite and not negative, with a positive sum in each sequence";
    for (weights, wrong) in [
        ([1.0, -9.0, 0.5, -0.25], Some((3, -0.25))),
        ([f64::INFINITY, 0.0, 0.5, 1.0], Some((0, f64::INFINITY))),
        ([1.0, 1.0, f64::NEG_INFINITY, 1.0], Some((2, f64::NEG_INFINITY))),
        // no weight at all: the error names the first kept slot
        ([0.0, 1.0, 0.5, 0.25], Some((0, 0.0))),
        ([1.0, 1.0, 0.0, -0.0], Some((2, 0.0))),
        // dropped, or undefined but not negative
        ([1.0, f64::NEG_INFINITY, 0.0, 1.0], None),
        ([f64::NAN, 1.0, 0.0, 1.0], None),
    ] {
        let mut out = [f64::UNWRITTEN; 4];
        let result = attention_credit(&batch(), AttentionInput { scores: &[1.0, 1.0], weights: &weights }, &mut out);
        let ended = Ended::new(result).with(&out);
        let what = format!("{weights:?}");
        match wrong {
            Some((index, got)) => ended.refused(&what, Error::Entry { what: "weights", index, must_be, got }),
            None => ended.accepted(&what),
        }
    }
}

#[test]
fn overlong_buffers() {
    let must_be = "at least 1 and at most max_len";
    for (max_len, buffer) in [(10, 0), (10, 11), (0, 1), (0, 0)] {
        let mut out = [f64::UNWRITTEN; 1];
        let config = OverlongConfig { max_len, buffer, ..Default::default() };
        let result = overlong_penalty(OverlongInput { scores: &[0.5], lengths: &[3] }, &config, &mut out);
        let error = Error::Config { what: "buffer", must_be, got: f64::from(buffer) };
        Ended::new(result).with(&out).refused("overlong_penalty", error);
    }
}

#[test]
fn groups_of_another_batch() {
    let mut out = [u64::UNWRITTEN; 2];
    for (ids, got) in [(vec![0, 1, 0], 3), (vec![0], 1)] {
        let result = group_tokens(&batch(), &Groups::from_ids(&ids).unwrap(), &mut out);
        let error = Error::Length { what: "groups", expected: 2, got };
        Ended::new(result).with(&out).refused("group_tokens", error);
    }
}

#[test]
fn lonely_samples() {
    let input =
        PolicyLossInput { log_probs: &[0.5; 4], old_log_probs: &[0.5; 4], advantages: &[0.5; 4], weights: None };
    let mut grad = [f64::UNWRITTEN; 4];
    let mut run = |ids: &[u32]| {
        let groups = Groups::from_ids(ids).unwrap();
        let mut scratch = vec![Moments::default(); groups.count()];
        let result = gvpo(&batch(), &groups, input, &GvpoConfig::default(), &mut scratch, &mut grad);
        Ended::new(result).with(&grad)
    };
    run(&[0, 1]).refused("gvpo", Error::TooFew { what: "groups", needed: 2, got: 1 });
    run(&[0, 0, 0]).refused("gvpo", Error::Length { what: "groups", expected: 2, got: 3 });
    run(&[0, 0]).accepted("gvpo");
}

#[test]
fn counts_of_gmpo() {
    let input =
        PolicyLossInput { log_probs: &[0.5; 4], old_log_probs: &[0.5; 4], advantages: &[0.5; 4], weights: None };
    let mut grad = [f64::UNWRITTEN; 4];
    for (what, sequences, ranks) in [("sequences", 0, 1), ("ranks", 2, 0)] {
        let counts = Counts::Global(GlobalCounts { sequences, ranks, ..Default::default() });
        let result = gmpo(&batch(), input, &GmpoConfig { counts, ..Default::default() }, &mut grad);
        Ended::new(result).with(&grad).refused("gmpo", Error::Config { what, must_be: "at least 1", got: 0.0 });
    }
    // a micro-batch of a larger step may be empty: it adds nothing
    let counts = Counts::Global(GlobalCounts { sequences: 2, ..Default::default() });
    let empty = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[false; 4])).unwrap();
    let result = gmpo(&empty, input, &GmpoConfig { counts, ..Default::default() }, &mut grad).unwrap();
    assert_eq!((result, grad), (PolicyLoss::default(), [0.0; 4]));
}

#[test]
fn an_upper_bound_that_is_none() {
    let input =
        PolicyLossInput { log_probs: &[0.5; 4], old_log_probs: &[0.5; 4], advantages: &[0.5; 4], weights: None };
    let config = ClipCovConfig { upper: f64::NAN, ..Default::default() };
    let mut selected = [true; 4];
    let result = clip_cov_selection(&batch(), input, &ClipCovSelectionConfig { clip: config, seed: 0 }, &mut selected);
    let error = Error::Config { what: "lower", must_be: "at most upper", got: 1.0 };
    Ended::new(result).with(&selected).refused("clip_cov_selection", error);
}

#[test]
fn no_sequence_has_no_mean() {
    let none = Batch::new(Layout::packed(&[0]).unwrap(), Mask::new(&[])).unwrap();
    let input = KlInRewardInput::<f64> { scores: &[], old_log_probs: &[], ref_log_probs: &[] };
    Ended::new(kl_in_reward(&none, input, &KlRewardConfig::default(), &mut []))
        .refused("kl_in_reward", Error::EmptyMask);
}
