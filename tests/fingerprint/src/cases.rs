//! The batches every formula is run on.

use tokenwise::{Batch, Groups, Result};

use crate::{
    hash::{Hash, Hashed, Value},
    inputs::{fill, Kind, Random, Range},
    shapes::{Shape, Slots, FEW},
};

/// Dense for 1, 2 and 9 sequences; two of the groups have one member only.
const IDS: [u32; 9] = [0, 1, 0, 1, 1, 0, 3, 1, 2];
/// The same without a group of one, except where there is only one sequence.
const PAIRED: [u32; 9] = [0, 0, 1, 0, 1, 1, 0, 1, 1];
const VOCAB: usize = 37;

/// A batch with every input a token-wise formula may need; log-probabilities of three policies that differ slightly.
pub(crate) struct Case<'a, R> {
    pub(crate) batch: Batch<'a>,
    pub(crate) groups: Groups<'a>,
    /// Without a group of one where possible.
    pub(crate) paired: Groups<'a>,
    pub(crate) log_probs: &'a [R],
    pub(crate) old_log_probs: &'a [R],
    pub(crate) ref_log_probs: &'a [R],
    pub(crate) advantages: &'a [R],
    pub(crate) values: &'a [R],
    pub(crate) rewards: &'a [R],
    /// Not negative.
    pub(crate) weights: &'a [R],
    /// One per sequence.
    pub(crate) scores: &'a [R],
    /// One per sequence.
    pub(crate) bootstrap: &'a [R],
}

/// A batch with logits.
pub(crate) struct VocabCase<'a, R> {
    pub(crate) batch: Batch<'a>,
    pub(crate) vocab: usize,
    pub(crate) logits: &'a [R],
    pub(crate) ref_logits: &'a [R],
    pub(crate) tokens: &'a [u32],
    pub(crate) grad_log_probs: &'a [R],
    pub(crate) grad_entropy: &'a [R],
}

/// Buffers for the outputs of one call, and the hash they are added to.
pub(crate) struct Out<'a, R> {
    /// One per token.
    pub(crate) a: &'a mut [R],
    /// One per token.
    pub(crate) b: &'a mut [R],
    /// One per token.
    pub(crate) c: &'a mut [R],
    /// One per sequence.
    pub(crate) sequences: &'a mut [R],
    /// One per token and vocabulary entry; empty in a [`Case`].
    pub(crate) logits: &'a mut [R],
    hash: &'a mut Hash,
}

impl<R: Value> Out<'_, R> {
    /// Hashes the returned value and all outputs, then fills the outputs with NaN for the next call.
    pub(crate) fn record(&mut self, returned: impl Hashed) {
        self.hash.add(&returned);
        for column in [&*self.a, self.b, self.c, self.sequences, self.logits] {
            column.add_to(self.hash);
        }
        self.reset();
    }

    /// Hashes the returned value only.
    pub(crate) fn record_alone(&mut self, returned: impl Hashed) {
        self.hash.add(&returned);
    }

    /// A column by its letter: `a`, `b` or `c`; `s` for the sequences, `l` for the logits.
    pub(crate) fn slot(&mut self, name: char) -> &mut [R] {
        match name {
            'a' => self.a,
            'b' => self.b,
            'c' => self.c,
            's' => self.sequences,
            _ => self.logits,
        }
    }

    fn reset(&mut self) {
        for column in [&mut *self.a, self.b, self.c, self.sequences, self.logits] {
            column.fill(R::nan());
        }
    }
}

/// Runs a token-wise formula on every case.
#[inline(never)]
pub(crate) fn tokens<R: Value>(mut formula: impl FnMut(&Case<'_, R>, &mut Out<'_, R>)) -> Result<u64> {
    let mut hash = Hash::new();
    let mut inputs: [R::Tokens; 7] = core::array::from_fn(|_| R::tokens());
    let mut outputs: [R::Tokens; 3] = core::array::from_fn(|_| R::tokens());
    for (shape, range) in [
        (Shape::Padded, Range::Usual),
        (Shape::Packed, Range::Usual),
        (Shape::Long(inputs[0].as_mut().len()), Range::Usual),
        (Shape::Packed, Range::Extreme),
        (Shape::Packed, Range::Undefined),
        (Shape::Dropped, Range::Usual),
    ] {
        let slots = Slots::new(shape);
        let batch = slots.batch()?;
        let (tokens, sequences) = (batch.tokens(), batch.sequences());

        let mut columns = inputs.each_mut().map(|column| &mut column.as_mut()[..tokens]);
        for (seed, column) in columns.iter_mut().enumerate() {
            let kind = match seed {
                0..=2 => Kind::LogProb,
                6 => Kind::NotNegative,
                _ => Kind::Signed,
            };
            slots.fill(column, 1, seed as u64, kind, range);
        }
        let [log_probs, old_log_probs, ref_log_probs, advantages, values, rewards, weights] =
            columns.map(|column| &*column);
        let [mut scores, mut bootstrap, mut sequence_outputs] = [[R::zero(); IDS.len()]; 3];
        fill(&mut scores, 100, Kind::Signed, range);
        fill(&mut bootstrap, 101, Kind::Signed, range);
        let case = Case {
            batch,
            groups: Groups::from_ids(&IDS[..sequences])?,
            paired: Groups::from_ids(&PAIRED[..sequences])?,
            log_probs,
            old_log_probs,
            ref_log_probs,
            advantages,
            values,
            rewards,
            weights,
            scores: &scores[..sequences],
            bootstrap: &bootstrap[..sequences],
        };
        let [a, b, c] = outputs.each_mut().map(|column| &mut column.as_mut()[..tokens]);
        let sequences = &mut sequence_outputs[..sequences];
        let mut out = Out { a, b, c, sequences, logits: &mut [], hash: &mut hash };
        out.reset();
        formula(&case, &mut out);
    }
    Ok(hash.value())
}

/// Runs a formula over logits on every case.
#[inline(never)]
pub(crate) fn vocabulary<R: Value>(mut formula: impl FnMut(&VocabCase<'_, R>, &mut Out<'_, R>)) -> Result<u64> {
    let mut hash = Hash::new();
    let [mut logits, mut ref_logits, mut grad_logits]: [R::Logits; 3] = core::array::from_fn(|_| R::logits());
    for (shape, vocab, range) in [
        (Shape::FewPadded, VOCAB, Range::Usual),
        (Shape::FewPacked, VOCAB, Range::Usual),
        (Shape::FewPacked, VOCAB, Range::Extreme),
        (Shape::FewPacked, VOCAB, Range::Undefined),
        (Shape::FewPacked, 1, Range::Usual),
        // beyond one block of a row's sum
        (Shape::Long(1), logits.as_mut().len(), Range::Usual),
    ] {
        let slots = Slots::new(shape);
        let batch = slots.batch()?;
        let (tokens, sequences) = (batch.tokens(), batch.sequences());

        let [logits, ref_logits, grad_logits] =
            [&mut logits, &mut ref_logits, &mut grad_logits].map(|room| &mut room.as_mut()[..tokens * vocab]);
        slots.fill(logits, vocab, 1, Kind::Signed, range);
        slots.fill(ref_logits, vocab, 2, Kind::Signed, range);
        if range == Range::Undefined {
            forbid_entries(logits, vocab);
        }
        let [mut grad_log_probs, mut grad_entropy] = [[R::zero(); FEW]; 2];
        slots.fill(&mut grad_log_probs[..tokens], 1, 3, Kind::Signed, Range::Usual);
        slots.fill(&mut grad_entropy[..tokens], 1, 4, Kind::Signed, Range::Usual);
        let (mut ids, mut random) = ([0; FEW], Random::new(5));
        for (id, &keep) in ids.iter_mut().zip(batch.mask().as_slice()) {
            *id = if keep { random.below(vocab as u32) } else { u32::MAX };
        }
        let case = VocabCase {
            batch,
            vocab,
            logits,
            ref_logits,
            tokens: &ids[..tokens],
            grad_log_probs: &grad_log_probs[..tokens],
            grad_entropy: &grad_entropy[..tokens],
        };
        let [mut a, mut b, mut c] = [[R::zero(); FEW]; 3];
        let [a, b, c] = [&mut a, &mut b, &mut c].map(|column| &mut column[..tokens]);
        let sequences = &mut [R::zero(); IDS.len()][..sequences];
        let mut out = Out { a, b, c, sequences, logits: grad_logits, hash: &mut hash };
        out.reset();
        formula(&case, &mut out);
    }
    Ok(hash.value())
}

/// Every second row gets only usual numbers and −inf, the third nothing but −inf: tokens that a sampler has masked.
fn forbid_entries<R: Value>(logits: &mut [R], vocab: usize) {
    for (index, row) in logits.chunks_exact_mut(vocab).enumerate() {
        if index % 2 == 0 {
            fill(row, 6, Kind::Signed, Range::Usual);
            let step = if index == 2 { 1 } else { 3 };
            row.iter_mut().step_by(step).for_each(|logit| *logit = R::neg_infinity());
        }
    }
}
