//! How sequences reach a scan: padded and packed batches alike as one kind per slot, in steps that fit the device.

use std::ops::Range;

use tokenwise::{advantage::Across, Batch};

use crate::error::GpuError;

// as in the shaders that scan
const SLOT_NOTHING: u32 = 0;
const SLOT_ZERO_STEP: u32 = 1;
const SLOT_KEPT: u32 = 2;
const SLOT_LAST_KEPT: u32 = 3;
/// A slot's word holds its sequence above two bits of kind.
const MOST_SEQUENCES: u64 = 1 << 30;

/// The sequences of a batch.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    keep: &'a [bool],
    /// First slot of each sequence, then the number of slots.
    starts: Vec<usize>,
    across: Across,
}

impl<'a> Segments<'a> {
    pub(crate) fn new(batch: &Batch<'a>, across: Across) -> Self {
        let starts = (0..batch.sequences()).filter_map(|sequence| batch.layout().slots(sequence));
        let starts = starts.map(|slots| slots.start).chain([batch.tokens()]).collect();
        Self { keep: batch.mask().as_slice(), starts, across }
    }

    /// The slots of these sequences.
    pub(crate) fn slots(&self, sequences: &Range<usize>) -> Range<usize> {
        self.starts[sequences.start]..self.starts[sequences.end]
    }

    /// Splits the sequences that have slots into runs of at most `words` slots and `words` sequences.
    pub(crate) fn steps(&self, words: u64) -> Result<Vec<Range<usize>>, GpuError> {
        let most = usize::try_from(words.min(MOST_SEQUENCES)).unwrap_or(usize::MAX);
        let mut steps: Vec<Range<usize>> = Vec::new();
        for (sequence, bounds) in self.starts.windows(2).enumerate() {
            let len = bounds[1] - bounds[0];
            if len == 0 {
                continue;
            }
            if len > most {
                return Err(GpuError::Limit { what: "slots of one sequence", needed: len as u64, limit: most as u64 });
            }
            match steps.last_mut() {
                Some(step) if bounds[1] - self.starts[step.start] <= most && sequence - step.start < most => {
                    step.end = sequence + 1;
                }
                _ => steps.push(sequence..sequence + 1),
            }
        }
        Ok(steps)
    }

    /// The sequences of a step of which one of these says no, asked about the sequence and each of its kept slots.
    pub(crate) fn unfit(
        &self,
        sequences: &Range<usize>,
        sequence_fits: impl Fn(usize) -> bool,
        slot_fits: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let fits = |&sequence: &usize| {
            let mut slots = self.slots(&(sequence..sequence + 1));
            sequence_fits(sequence) && slots.all(|slot| !self.keep[slot] || slot_fits(slot))
        };
        sequences.clone().filter(|sequence| !fits(sequence)).collect()
    }

    /// One word per slot of a step: its kind, and above it the sequence, counted from the first of the step. Sequences in
    /// `without` (ascending) are nothing at all.
    pub(crate) fn words(&self, sequences: &Range<usize>, without: &[usize]) -> Vec<u32> {
        let slots = self.slots(sequences);
        let mut words = vec![SLOT_NOTHING; slots.len()];
        for sequence in sequences.clone() {
            if without.binary_search(&sequence).is_ok() {
                continue;
            }
            let row = self.slots(&(sequence..sequence + 1));
            let keep = &self.keep[row.clone()];
            let Some(last) = keep.iter().rposition(|&keep| keep) else { continue };
            let dropped = match self.across {
                Across::StepOver => SLOT_NOTHING,
                Across::ZeroStep => SLOT_ZERO_STEP,
            };
            // fits: a step has fewer than 2³⁰ sequences
            let number = ((sequence - sequences.start) as u32) << 2;
            // what follows the last kept slot stays nothing under either rule
            for (word, &keep) in words[row.start - slots.start..].iter_mut().zip(&keep[..last]) {
                *word = number | if keep { SLOT_KEPT } else { dropped };
            }
            words[row.start - slots.start + last] = number | SLOT_LAST_KEPT;
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenwise::{Layout, Mask};

    const KEEP: [bool; 7] = [false, true, false, true, false, true, false];

    fn segments(across: Across) -> Segments<'static> {
        let layout = Layout::packed(&[0, 0, 5, 5, 7]).unwrap();
        Segments::new(&Batch::new(layout, Mask::new(&KEEP)).unwrap(), across)
    }

    #[test]
    fn slots_know_their_kind_and_sequence() {
        let all = 0..4;
        let over = [0, 4 | 2, 0, 4 | 3, 0, 12 | 3, 0];
        let zero = [4 | 1, 4 | 2, 4 | 1, 4 | 3, 0, 12 | 3, 0];
        assert_eq!(segments(Across::ZeroStep).words(&all, &[]), zero);
        let words = segments(Across::StepOver).words(&all, &[]);
        assert_eq!(kinds(&words), over);
        assert_eq!(segments(Across::ZeroStep).words(&(3..4), &[]), [3, 0]);
        assert_eq!(segments(Across::ZeroStep).words(&all, &[1]), [0, 0, 0, 0, 0, 12 | 3, 0]);
    }

    /// A slot that is nothing may bear any sequence.
    fn kinds(words: &[u32]) -> Vec<u32> {
        words.iter().map(|&word| if word & 3 == SLOT_NOTHING { 0 } else { word }).collect()
    }

    #[test]
    fn steps_hold_whole_sequences() {
        let segments = segments(Across::StepOver);
        assert_eq!(segments.steps(7), Ok(std::iter::once(1..4).collect()));
        assert_eq!(segments.steps(6), Ok(vec![1..2, 3..4]));
        assert!(matches!(segments.steps(4), Err(GpuError::Limit { needed: 5, limit: 4, .. })));
    }
}
