use std::ops::Range;

use tokenwise::{Batch, Groups, Layout, Mask};

use super::{Column, Number};

/// A world laid out as flat slices.
#[derive(Clone, Debug)]
pub struct Flat<R> {
    pub(super) padded: Option<usize>,
    pub(super) offsets: Vec<u32>,
    /// The slots of each sequence, without padding.
    pub rows: Vec<Range<usize>>,
    /// The mask.
    pub keep: Vec<bool>,
    /// Token ids.
    pub ids: Vec<u32>,
    /// In the order of [`Column`].
    pub columns: Vec<Vec<R>>,
    /// One per sequence; that of a sequence without kept tokens is never used.
    pub scores: Vec<R>,
    /// One per sequence, for formulas without tokens.
    pub outcomes: Vec<R>,
    /// One per sequence; that of a sequence without kept tokens is never used.
    pub bootstrap: Vec<R>,
    /// One per sequence.
    pub lengths: Vec<u32>,
    /// One per sequence, dense.
    pub group_ids: Vec<u32>,
    /// Entries per row of logits.
    pub vocab: usize,
}

#[allow(clippy::unwrap_used, reason = "what a world lays out fits together")]
impl<R: Number> Flat<R> {
    /// The layout of the slots.
    pub fn layout(&self) -> Layout<'_> {
        match self.padded {
            Some(len) => Layout::padded(self.rows.len(), len).unwrap(),
            None => Layout::packed(&self.offsets).unwrap(),
        }
    }

    /// Layout and mask.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self.layout(), Mask::new(&self.keep)).unwrap()
    }

    /// The prompts.
    pub fn groups(&self) -> Groups<'_> {
        Groups::from_ids(&self.group_ids).unwrap()
    }

    /// Number of token slots.
    pub fn tokens(&self) -> usize {
        self.keep.len()
    }

    /// A per-token quantity.
    pub fn column(&self, column: Column) -> &[R] {
        &self.columns[column as usize]
    }

    /// The same numbers as `f64`, exactly.
    pub fn widen(&self) -> Flat<f64> {
        let widen = |values: &[R]| values.iter().map(|value| value.widen()).collect::<Vec<f64>>();
        Flat {
            padded: self.padded,
            offsets: self.offsets.clone(),
            rows: self.rows.clone(),
            keep: self.keep.clone(),
            ids: self.ids.clone(),
            columns: self.columns.iter().map(|column| widen(column)).collect(),
            scores: widen(&self.scores),
            outcomes: widen(&self.outcomes),
            bootstrap: widen(&self.bootstrap),
            lengths: self.lengths.clone(),
            group_ids: self.group_ids.clone(),
            vocab: self.vocab,
        }
    }
}
