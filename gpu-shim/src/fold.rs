//! One number per sequence or group: sums, maxima and minima of the kept entries.

use crate::{
    batch::{GpuBatch, GpuGroups, Segmented},
    column::{Column, Input},
    error::GpuError,
    kernel::{Access, Kernel, THREADS},
    recording::Recording,
};

/// Words of a chunk's result that is not the last: `RESULT_WORDS` in the shader.
const RESULT_WORDS: u64 = 3;

/// What a fold computes. Without a kept entry the result is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The sum, rounded once.
    Sum = 0,
    /// The largest entry.
    Max = 1,
    /// The smallest entry.
    Min = 2,
}

impl Recording<'_> {
    /// One number per sequence from the kept tokens of each, such as the core's
    /// [`sequence_sums`](tokenwise::advantage::sequence_sums).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if the column does not fit the batch; [`GpuError::Limit`].
    pub fn fold_sequences(
        &mut self,
        operation: Fold,
        batch: &GpuBatch<'_>,
        tokens: &Input<'_>,
    ) -> Result<Column, GpuError> {
        tokens.check_len("rewards", batch.tokens())?;
        let tokens = self.column(tokens)?;
        self.fold(operation, batch, &tokens)
    }

    /// One number per group from those of its sequences.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if the column does not fit the groups; [`GpuError::Limit`].
    pub fn fold_groups(
        &mut self,
        operation: Fold,
        groups: &GpuGroups<'_>,
        sequences: &Input<'_>,
    ) -> Result<Column, GpuError> {
        sequences.check_len("scores", groups.host().sequences())?;
        let sequences = self.column(sequences)?;
        self.fold(operation, groups, &sequences)
    }

    /// Folds the kept entries of each segment to one number, which a kernel reads as an input per sequence. NaN and
    /// infinities give what the core's sum or comparison gives, and set the report's flag.
    pub(crate) fn fold(&mut self, operation: Fold, over: &dyn Segmented, entries: &Column) -> Result<Column, GpuError> {
        let (slots, levels, record) = (over.slots(self)?, over.levels(self)?, self.record(0, 0)?);
        let pipelines = self.pipelines("fold", || Kernel {
            label: "fold".into(),
            wgsl: concat!(
                include_str!("../shaders/prelude/grid.wgsl"),
                include_str!("../shaders/prelude/slots.wgsl"),
                include_str!("../shaders/prelude/special.wgsl"),
                include_str!("../shaders/prelude/sum.wgsl"),
                include_str!("../shaders/prelude/fold.wgsl"),
            )
            .into(),
            bindings: [[Access::Read; 4].as_slice(), &[Access::Write; 2]].concat(),
            passes: &["fold"],
        })?;
        let mut entries = entries.clone();
        let order = levels.order.clone();
        for (level, table) in levels.tables.iter().enumerate() {
            let chunks = table.len() / 2;
            let last = level + 1 == levels.tables.len();
            let results = self.scratch(if last { chunks } else { chunks * RESULT_WORDS })?;
            let source = match level {
                0 => u32::from(order.is_some()),
                _ => 2,
            };
            let params = [chunks as u32, source, operation as u32, u32::from(last)];
            let order = order.as_ref().unwrap_or(table);
            let bound = [table, &slots, order, &entries, &results, &record.column];
            self.dispatch(&pipelines, 0, &params, &bound, chunks.div_ceil(THREADS.into()))?;
            entries = results;
        }
        Ok(entries)
    }
}
