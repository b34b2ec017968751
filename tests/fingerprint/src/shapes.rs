//! The layout of a case, and which tokens are kept.

use tokenwise::{Batch, Layout, Mask, Result};

use crate::{
    hash::Value,
    inputs::{fill, is_varied, poison, Kind, Random, Range},
};

/// Around the widths of lanes and of groups of lanes.
const LENGTHS: [usize; 9] = [0, 1, 7, 8, 9, 15, 16, 17, 33];
/// Padding on the right of the longest row too.
const PADDED: usize = 36;
const FEW_LENGTHS: [usize; 4] = [0, 1, 5, 7];
const FEW_PADDED: usize = 6;
/// The largest number of tokens of the shapes used with logits.
pub(crate) const FEW: usize = FEW_LENGTHS.len() * FEW_PADDED;
pub(crate) const MOST: usize = 1100;

#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Padded,
    Packed,
    /// Like the two above, with few enough tokens for a vocabulary each.
    FewPadded,
    FewPacked,
    /// One row of this length.
    Long(usize),
    /// Two padded rows without a kept token.
    Dropped,
}

pub(crate) struct Slots {
    keep: [bool; MOST],
    /// First slot of each sequence, and one past the last.
    starts: [u32; LENGTHS.len() + 1],
    sequences: usize,
    /// Slots per row, if all rows have the same number.
    padded: Option<usize>,
}

impl Slots {
    pub(crate) fn new(shape: Shape) -> Self {
        let (lengths, padded): (&[usize], _) = match shape {
            Shape::Padded => (&LENGTHS, Some(PADDED)),
            Shape::Packed => (&LENGTHS, None),
            Shape::FewPadded => (&FEW_LENGTHS[..3], Some(FEW_PADDED)),
            Shape::FewPacked => (&FEW_LENGTHS, None),
            Shape::Long(len) => (&[len], None),
            Shape::Dropped => (&[0, 0], Some(3)),
        };
        let mut random = Random::new(u64::MAX);
        let mut length = |usual| match shape {
            Shape::Padded | Shape::Packed if is_varied() => random.below(PADDED as u32 + 1) as usize,
            Shape::FewPadded | Shape::FewPacked if is_varied() => random.below(FEW_PADDED as u32 + 1) as usize,
            Shape::Long(most) if is_varied() => 1 + random.below(most as u32) as usize,
            _ => usual,
        };
        let mut slots = Self { keep: [false; MOST], starts: [0; LENGTHS.len() + 1], sequences: lengths.len(), padded };
        let mut start = 0;
        for (sequence, &usual) in lengths.iter().enumerate() {
            let len = length(usual);
            let mut random = Random::new(sequence as u64);
            for keep in &mut slots.keep[start..start + len] {
                // a quarter of the slots are holes; a row of one stays
                *keep = len == 1 || random.below(4) != 0;
            }
            start += padded.unwrap_or(len);
            slots.starts[sequence + 1] = start as u32;
        }
        slots
    }

    pub(crate) fn batch(&self) -> Result<Batch<'_>> {
        let starts = &self.starts[..=self.sequences];
        let layout = match self.padded {
            Some(len) => Layout::padded(self.sequences, len)?,
            None => Layout::packed(starts)?,
        };
        Batch::new(layout, Mask::new(&self.keep[..layout.tokens()]))
    }

    /// Fills `width` numbers per token, row by row: a sequence has the same numbers whether padded or packed.
    pub(crate) fn fill<R: Value>(&self, column: &mut [R], width: usize, seed: u64, kind: Kind, range: Range) {
        for (sequence, ends) in self.starts[..=self.sequences].windows(2).enumerate() {
            let (start, end) = (ends[0] as usize, ends[1] as usize);
            fill(&mut column[start * width..end * width], seed * 16 + sequence as u64, kind, range);
        }
        for (index, (row, &keep)) in column.chunks_exact_mut(width).zip(&self.keep).enumerate() {
            if !keep {
                poison(row, index);
            }
        }
    }
}
