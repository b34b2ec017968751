//! Single entries that cannot be right, and fields whose domain depends on another.

use tokenwise::{advantage::*, loss::*, policy::*, reward::*, Batch, Error, Groups, Layout, Mask};

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
        // no weight at all: named by the first kept slot
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
fn no_sequence_has_no_mean() {
    let none = Batch::new(Layout::packed(&[0]).unwrap(), Mask::new(&[])).unwrap();
    let input = KlInRewardInput::<f64> { scores: &[], old_log_probs: &[], ref_log_probs: &[] };
    Ended::new(kl_in_reward(&none, input, &KlRewardConfig::default(), &mut []))
        .refused("kl_in_reward", Error::EmptyMask);
}
