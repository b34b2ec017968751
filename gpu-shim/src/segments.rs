//! Sequences on the device: padded and packed batches become one word per slot, in steps that fit the device.

use std::ops::Range;

use tokenwise::{Batch, Groups};

use crate::error::GpuError;

// must match shaders/prelude/slots.wgsl
const SLOT_DROPPED: u32 = 0;
const SLOT_GAP: u32 = 1;
pub(crate) const SLOT_KEPT: u32 = 2;
const SLOT_LAST_KEPT: u32 = 3;
/// A slot's word: the sequence, shifted left by two bits, and the kind.
const MOST_SEQUENCES: u64 = 1 << 30;

/// One word per slot of a batch.
pub(crate) fn words(batch: &Batch<'_>) -> Result<Vec<u32>, GpuError> {
    let sequences = batch.sequences();
    if sequences as u64 > MOST_SEQUENCES {
        return Err(GpuError::Limit { what: "sequences", needed: sequences as u64, limit: MOST_SEQUENCES });
    }
    Ok(Segments::new(batch).words(&(0..sequences), &[]))
}

/// One word per sequence, in place of a token, with its group in place of a sequence.
pub(crate) fn group_words(groups: &Groups<'_>) -> Result<Vec<u32>, GpuError> {
    let sequences = groups.sequences() as u64;
    if sequences > MOST_SEQUENCES {
        return Err(GpuError::Limit { what: "sequences", needed: sequences, limit: MOST_SEQUENCES });
    }
    // there are at most as many groups
    Ok(groups.ids().map(|group| (group as u32) << 2 | SLOT_KEPT).collect())
}

/// The number of sequences of each group, and the sequences in the order of their groups.
pub(crate) fn group_order(groups: &Groups<'_>) -> (Vec<usize>, Vec<u32>) {
    let mut sizes = vec![0; groups.count()];
    for group in groups.ids() {
        sizes[group] += 1;
    }
    let mut next = 0;
    let start = |&size: &usize| {
        let start = next;
        next += size;
        start
    };
    let mut places: Vec<usize> = sizes.iter().map(start).collect();
    let mut order = vec![0; groups.sequences()];
    for (sequence, group) in (0..).zip(groups.ids()) {
        order[places[group]] = sequence;
        places[group] += 1;
    }
    (sizes, order)
}

/// Entries that one thread folds.
const CHUNK: usize = 64;

/// The tables of a fold over contiguous segments of these sizes: (start, end) of every chunk, level by level. The last
/// level has one chunk per segment.
pub(crate) fn fold_tables(mut sizes: Vec<usize>) -> Vec<Vec<u32>> {
    let mut tables = Vec::new();
    loop {
        let (mut table, mut at) = (Vec::new(), 0);
        for size in &mut sizes {
            let end = at + *size;
            *size = size.div_ceil(CHUNK).max(1);
            for chunk in 0..*size {
                let start = at + chunk * CHUNK;
                table.extend([start as u32, end.min(start + CHUNK) as u32]);
            }
            at = end;
        }
        tables.push(table);
        if sizes.iter().all(|&size| size == 1) {
            return tables;
        }
    }
}

/// The sequences of a batch.
#[derive(Debug)]
pub(crate) struct Segments<'a> {
    keep: &'a [bool],
    /// First slot of each sequence, then the number of slots.
    starts: Vec<usize>,
}

impl<'a> Segments<'a> {
    pub(crate) fn new(batch: &Batch<'a>) -> Self {
        let starts = (0..batch.sequences()).filter_map(|sequence| batch.layout().slots(sequence));
        let starts = starts.map(|slots| slots.start).chain([batch.tokens()]).collect();
        Self { keep: batch.mask().as_slice(), starts }
    }

    /// The slots of these sequences.
    pub(crate) fn slots(&self, sequences: &Range<usize>) -> Range<usize> {
        self.starts[sequences.start]..self.starts[sequences.end]
    }

    /// Splits the non-empty sequences into runs of at most `words` slots and `words` sequences; a longer sequence is a
    /// run of its own.
    pub(crate) fn steps(&self, words: u64) -> Vec<Range<usize>> {
        let most = usize::try_from(words.min(MOST_SEQUENCES)).unwrap_or(usize::MAX);
        let mut steps: Vec<Range<usize>> = Vec::new();
        for (sequence, bounds) in self.starts.windows(2).enumerate() {
            if bounds[1] == bounds[0] {
                continue;
            }
            match steps.last_mut() {
                Some(step) if bounds[1] - self.starts[step.start] <= most && sequence - step.start < most => {
                    step.end = sequence + 1;
                }
                _ => steps.push(sequence..sequence + 1),
            }
        }
        steps
    }

    /// The sequences of a step for which a predicate fails, on the sequence itself or on one of its kept slots.
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

    /// One word per slot of a step: its kind and, above it, the sequence relative to the step. Slots of sequences in
    /// `without` (ascending) are `SLOT_DROPPED`.
    pub(crate) fn words(&self, sequences: &Range<usize>, without: &[usize]) -> Vec<u32> {
        let slots = self.slots(sequences);
        let mut words = vec![SLOT_DROPPED; slots.len()];
        for sequence in sequences.clone() {
            if without.binary_search(&sequence).is_ok() {
                continue;
            }
            let row = self.slots(&(sequence..sequence + 1));
            let keep = &self.keep[row.clone()];
            let Some(last) = keep.iter().rposition(|&keep| keep) else { continue };
            // fits: a step has fewer than 2³⁰ sequences
            let number = ((sequence - sequences.start) as u32) << 2;
            // slots after the last kept one are SLOT_DROPPED
            for (word, &keep) in words[row.start - slots.start..].iter_mut().zip(&keep[..last]) {
                *word = number | if keep { SLOT_KEPT } else { SLOT_GAP };
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

    fn batch() -> Batch<'static> {
        Batch::new(Layout::packed(&[0, 0, 5, 5, 7]).unwrap(), Mask::new(&KEEP)).unwrap()
    }

    #[test]
    fn slots_know_their_kind_and_sequence() {
        let batch = batch();
        assert_eq!(words(&batch), Ok(vec![4 | 1, 4 | 2, 4 | 1, 4 | 3, 0, 12 | 3, 0]));
        let segments = Segments::new(&batch);
        assert_eq!(segments.words(&(3..4), &[]), [3, 0]);
        assert_eq!(segments.words(&(0..4), &[1]), [0, 0, 0, 0, 0, 12 | 3, 0]);
    }

    #[test]
    fn folds_end_with_one_chunk_per_segment() {
        assert_eq!(fold_tables(vec![]), [[0; 0]]);
        assert_eq!(fold_tables(vec![3, 0, 64]), [[0, 3, 3, 3, 3, 67]]);
        assert_eq!(fold_tables(vec![1, 65]), [vec![0, 1, 1, 65, 65, 66], vec![0, 1, 1, 3]]);
        assert_eq!(fold_tables(vec![64 * 64 + 1]).len(), 3);
        let groups = Groups::from_ids(&[1, 0, 1, 2]).unwrap();
        assert_eq!(group_order(&groups), (vec![1, 2, 1], vec![1, 0, 2, 3]));
        assert_eq!(group_words(&groups), Ok(vec![6, 2, 6, 10]));
    }

    #[test]
    fn steps_hold_whole_sequences() {
        let batch = batch();
        let segments = Segments::new(&batch);
        assert_eq!(segments.steps(7), std::iter::once(1..4).collect::<Vec<_>>());
        assert_eq!(segments.steps(6), [1..2, 3..4]);
        assert_eq!(segments.steps(4), [1..2, 3..4]);
    }
}
