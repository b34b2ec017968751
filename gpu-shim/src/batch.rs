//! [`GpuBatch`] and [`GpuGroups`]: which tokens are kept and where their sequences are, which sequences belong together;
//! sent to the device once.

use std::sync::OnceLock;

use tokenwise::{Batch, Groups};

use crate::{column::Column, error::GpuError, recording::Recording, rows::kept_per_row, segments};

/// Entries in segments: the tokens of a batch in sequences, or sequences in groups. A
/// [`TokenKernel`](crate::token::TokenKernel) runs over either.
pub(crate) trait Segmented {
    /// Number of entries.
    fn entries(&self) -> usize;
    /// Number of segments.
    fn segments(&self) -> usize;
    /// One word per entry: its kind and its segment (`shaders/prelude/slots.wgsl`).
    fn slots(&self, recording: &mut Recording<'_>) -> Result<Column, GpuError>;
    /// How the entries of each segment are folded.
    fn levels(&self, recording: &mut Recording<'_>) -> Result<Levels, GpuError>;
}

/// The chunks of each level of a fold, and the entries in the order of their segments, if they are not in it already.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    pub(crate) tables: Vec<Column>,
    pub(crate) order: Option<Column>,
}

impl Levels {
    pub(crate) fn new(
        recording: &mut Recording<'_>,
        sizes: Vec<usize>,
        order: Option<&[u32]>,
    ) -> Result<Self, GpuError> {
        let mut tables = Vec::new();
        for table in segments::fold_tables(sizes) {
            tables.push(recording.upload_words(&table)?);
        }
        let order = order.map(|order| recording.upload_words(order)).transpose()?;
        Ok(Self { tables, order })
    }
}

/// A batch whose layout and mask go to the device once, when a kernel first needs them.
#[derive(Debug)]
pub struct GpuBatch<'a> {
    batch: Batch<'a>,
    counts: OnceLock<Column>,
    slots: OnceLock<Column>,
    levels: OnceLock<Levels>,
}

impl<'a> GpuBatch<'a> {
    /// Nothing is sent yet.
    pub const fn new(batch: Batch<'a>) -> Self {
        Self { batch, counts: OnceLock::new(), slots: OnceLock::new(), levels: OnceLock::new() }
    }

    /// The batch.
    pub const fn host(&self) -> &Batch<'a> {
        &self.batch
    }

    /// Number of token slots.
    pub const fn tokens(&self) -> usize {
        self.batch.tokens()
    }

    /// Number of kept tokens of each sequence, as `f32`.
    pub(crate) fn counts(&self, recording: &mut Recording<'_>) -> Result<Column, GpuError> {
        if let Some(counts) = self.counts.get() {
            return Ok(counts.clone());
        }
        let counts: Vec<f32> = kept_per_row(&self.batch).into_iter().map(|kept| kept as f32).collect();
        let column = recording.upload(&counts)?;
        Ok(self.counts.get_or_init(|| column).clone())
    }

    /// The core's error unless a token is kept.
    pub(crate) fn check_some_kept(&self) -> Result<(), GpuError> {
        match self.batch.kept() {
            0 => Err(tokenwise::Error::EmptyMask.into()),
            _ => Ok(()),
        }
    }
}

impl Segmented for GpuBatch<'_> {
    fn entries(&self) -> usize {
        self.batch.tokens()
    }

    fn segments(&self) -> usize {
        self.batch.sequences()
    }

    fn slots(&self, recording: &mut Recording<'_>) -> Result<Column, GpuError> {
        if let Some(column) = self.slots.get() {
            return Ok(column.clone());
        }
        let words = segments::words(&self.batch)?;
        let column = recording.upload_words(&words)?;
        Ok(self.slots.get_or_init(|| column).clone())
    }

    fn levels(&self, recording: &mut Recording<'_>) -> Result<Levels, GpuError> {
        if let Some(levels) = self.levels.get() {
            return Ok(levels.clone());
        }
        let layout = self.batch.layout();
        let sizes = (0..self.batch.sequences()).map(|sequence| layout.slots(sequence).map_or(0, |slots| slots.len()));
        let levels = Levels::new(recording, sizes.collect(), None)?;
        Ok(self.levels.get_or_init(|| levels).clone())
    }
}

/// Groups of sequences, sent to the device once, when a kernel first needs them. A formula over the numbers of
/// sequences runs as a formula of tokens does: sequences take the place of tokens, groups that of sequences.
#[derive(Debug)]
pub struct GpuGroups<'a> {
    groups: Groups<'a>,
    sizes: OnceLock<Column>,
    slots: OnceLock<Column>,
    levels: OnceLock<Levels>,
}

impl<'a> GpuGroups<'a> {
    /// Nothing is sent yet.
    pub const fn new(groups: Groups<'a>) -> Self {
        Self { groups, sizes: OnceLock::new(), slots: OnceLock::new(), levels: OnceLock::new() }
    }

    /// The groups.
    pub const fn host(&self) -> &Groups<'a> {
        &self.groups
    }

    /// Number of sequences of each group, as `f32`.
    pub(crate) fn sizes(&self, recording: &mut Recording<'_>) -> Result<Column, GpuError> {
        if let Some(sizes) = self.sizes.get() {
            return Ok(sizes.clone());
        }
        let (sizes, _) = segments::group_order(&self.groups);
        let sizes: Vec<f32> = sizes.into_iter().map(|size| size as f32).collect();
        let column = recording.upload(&sizes)?;
        Ok(self.sizes.get_or_init(|| column).clone())
    }
}

impl Segmented for GpuGroups<'_> {
    fn entries(&self) -> usize {
        self.groups.sequences()
    }

    fn segments(&self) -> usize {
        self.groups.count()
    }

    fn slots(&self, recording: &mut Recording<'_>) -> Result<Column, GpuError> {
        if let Some(column) = self.slots.get() {
            return Ok(column.clone());
        }
        let words = segments::group_words(&self.groups)?;
        let column = recording.upload_words(&words)?;
        Ok(self.slots.get_or_init(|| column).clone())
    }

    fn levels(&self, recording: &mut Recording<'_>) -> Result<Levels, GpuError> {
        if let Some(levels) = self.levels.get() {
            return Ok(levels.clone());
        }
        let (sizes, order) = segments::group_order(&self.groups);
        let levels = Levels::new(recording, sizes, Some(&order))?;
        Ok(self.levels.get_or_init(|| levels).clone())
    }
}
