//! Inputs of the formulas, from the fields of a file.

use std::{borrow::Cow, collections::HashMap};

use tokenwise::{advantage::sequence_sums, Batch, Layout, Mask};

use super::engine::Compute;
use crate::rollout::{Column, Rollouts, Row};

/// One batch with its per-sequence fields.
pub(crate) struct Inputs<'a> {
    rollouts: &'a Rollouts,
    /// Who computes the losses.
    pub(crate) compute: &'a Compute,
    offsets: Cow<'a, [u32]>,
    keep: Cow<'a, [bool]>,
    /// One per sequence; NaN where the file has none.
    pub(crate) scores: Option<Vec<f64>>,
    /// Response lengths, up to the last kept token unless the file has them.
    pub(crate) lengths: Option<Vec<u32>>,
    /// Number of kept tokens.
    pub(crate) chosen: Option<Vec<u32>>,
    pub(crate) prompts: Option<Vec<u32>>,
    /// Dense group ids: sequences with the same id answer the same prompt.
    pub(crate) groups: Option<Vec<u32>>,
    pub(crate) truncated: Option<Vec<bool>>,
}

impl<'a> Inputs<'a> {
    pub(crate) fn new(rollouts: &'a Rollouts, compute: &'a Compute) -> tokenwise::Result<Self> {
        let rows = &rollouts.rows;
        let tokenless = rollouts.tokens() == 0;
        // a sequence with nothing but a score gets one slot
        let (offsets, keep) = if tokenless {
            (Cow::Owned((0..=rows.len() as u32).collect()), Cow::Owned(vec![true; rows.len()]))
        } else {
            (Cow::Borrowed(&rollouts.offsets[..]), Cow::Borrowed(rollouts.kept()))
        };
        let of_slots = |count: fn(&[bool]) -> usize| -> Option<Vec<u32>> {
            let told = told(rows, |row| row.length);
            let counted = || (0..rows.len()).map(|row| count(&rollouts.kept()[rollouts.slots(row)]) as u32).collect();
            told.or_else(|| (!tokenless).then(counted))
        };
        let mut inputs = Self {
            rollouts,
            compute,
            offsets,
            keep,
            scores: rows
                .iter()
                .any(|row| row.score.is_some())
                .then(|| rows.iter().map(|row| row.score.unwrap_or(f64::NAN)).collect()),
            lengths: of_slots(|keep| keep.iter().rposition(|keep| *keep).map_or(0, |last| last + 1)),
            chosen: of_slots(|keep| keep.iter().filter(|keep| **keep).count()),
            prompts: told(rows, |row| row.prompt_length),
            groups: groups(rows),
            truncated: rows.iter().map(|row| row.truncated).collect(),
        };
        if let Some(column) = inputs.column(Column::Scores).filter(|_| inputs.scores.is_none()) {
            let mut scores = vec![0.0; rows.len()];
            sequence_sums(&inputs.batch()?, column, &mut scores)?;
            inputs.scores = Some(scores);
        }
        Ok(inputs)
    }

    pub(crate) fn batch(&self) -> tokenwise::Result<Batch<'_>> {
        Batch::new(Layout::packed(&self.offsets)?, Mask::new(&self.keep))
    }

    pub(crate) fn column(&self, column: Column) -> Option<&'a [f64]> {
        self.rollouts.column(column)
    }

    /// Whether there are per-token fields.
    pub(crate) fn has_tokens(&self) -> bool {
        self.rollouts.tokens() > 0
    }

    /// Scores per token: those of the file, or each score on the last kept token.
    pub(crate) fn token_scores(&self) -> Option<Cow<'a, [f64]>> {
        if let Some(column) = self.column(Column::Scores) {
            return Some(Cow::Borrowed(column));
        }
        let scores = self.scores.as_ref()?;
        let mut laid = vec![0.0; self.keep.len()];
        for (slots, score) in self.offsets.windows(2).zip(scores) {
            let (start, end) = (slots[0] as usize, slots[1] as usize);
            if let Some(last) = self.keep[start..end].iter().rposition(|keep| *keep) {
                laid[start + last] = *score;
            }
        }
        Some(Cow::Owned(laid))
    }

    /// The groups, or one group per sequence.
    pub(crate) fn groups_or_alone(&self) -> Cow<'_, [u32]> {
        match &self.groups {
            Some(groups) => Cow::Borrowed(groups),
            None => Cow::Owned((0..self.rollouts.rows.len() as u32).collect()),
        }
    }

    /// The line, row or record of a slot, and its token counted from 1.
    pub(crate) fn place_of_slot(&self, slot: usize) -> (u64, usize) {
        let sequence = self.offsets.partition_point(|start| *start as usize <= slot).saturating_sub(1);
        (self.place_of_sequence(sequence), slot - self.offsets[sequence] as usize + 1)
    }

    pub(crate) fn place_of_sequence(&self, sequence: usize) -> u64 {
        self.rollouts.rows.get(sequence).map_or(0, |row| row.place)
    }

    pub(crate) fn step(&self) -> Option<u64> {
        self.rollouts.rows.first().and_then(|row| row.step)
    }
}

/// A length of every sequence, if the file has all of them.
fn told(rows: &[Row], length: fn(&Row) -> Option<f64>) -> Option<Vec<u32>> {
    rows.iter().map(|row| length(row).filter(|length| *length >= 0.0).map(|length| length as u32)).collect()
}

/// Group ids in order of appearance, if every sequence has a group.
fn groups(rows: &[Row]) -> Option<Vec<u32>> {
    let mut seen = HashMap::new();
    let mut id = |group: u64| {
        let next = seen.len() as u32;
        *seen.entry(group).or_insert(next)
    };
    rows.iter().map(|row| row.group.map(&mut id)).collect()
}
