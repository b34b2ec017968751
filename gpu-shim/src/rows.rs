//! The sequences of a batch as entries: formulas of one number per sequence run as formulas of tokens do.

use tokenwise::Batch;

use crate::{
    batch::{Levels, Segmented},
    column::Column,
    error::GpuError,
    recording::Recording,
    segments::SLOT_KEPT,
};

/// All sequences of a batch as one segment of kept entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows(pub(crate) usize);

impl Segmented for Rows {
    fn entries(&self) -> usize {
        self.0
    }

    fn segments(&self) -> usize {
        1
    }

    fn slots(&self, recording: &mut Recording<'_>) -> Result<Column, GpuError> {
        recording.upload_words(&vec![SLOT_KEPT; self.0])
    }

    fn levels(&self, recording: &mut Recording<'_>) -> Result<Levels, GpuError> {
        Levels::new(recording, vec![self.0], None)
    }
}

/// The number of kept tokens of each sequence.
pub(crate) fn kept_per_row(batch: &Batch<'_>) -> Vec<usize> {
    let keep = batch.mask().as_slice();
    let kept = |sequence| {
        let slots = batch.layout().slots(sequence).unwrap_or_default();
        keep.get(slots).map_or(0, |keep| keep.iter().filter(|&&keep| keep).count())
    };
    (0..batch.sequences()).map(kept).collect()
}
