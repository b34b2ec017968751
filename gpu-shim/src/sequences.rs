//! Sequences in place of tokens, and what losses need of them: log-ratios, ratios and factors per sequence.

use crate::{
    batch::{GpuBatch, Levels, Segmented},
    column::{Column, Input},
    error::GpuError,
    fold::Fold,
    recording::{Pending, Recording},
    rows::kept_per_row,
    token::{bits, kernel, sequence, token, weight, Setting, Term, TokenKernel},
};

const DIFFERENCE: TokenKernel = kernel(
    "sequence/difference",
    include_str!("../shaders/sequence/difference.wgsl"),
    &[token("log_probs"), token("old_log_probs")],
    &["difference"],
    &[Term::Number("sum")],
    &[],
);

const SPREAD: TokenKernel = kernel(
    "sequence/spread",
    include_str!("../shaders/sequence/spread.wgsl"),
    &[weight("parts"), sequence("factors")],
    &["out"],
    &[],
    &[],
);

const RATIOS: TokenKernel = kernel(
    "sequence ratios",
    include_str!("../shaders/sequence/ratios.wgsl"),
    &[token("sums"), token("counts")],
    &["ratios"],
    &[],
    &[Setting::F32("cap")],
);

const FACTORS: TokenKernel = kernel(
    "sequence factors",
    include_str!("../shaders/sequence/factors.wgsl"),
    &[token("slopes"), token("counts"), weight("row_weights")],
    &["factors"],
    &[],
    &[Setting::F32("share")],
);

/// The sequences of a batch in place of its tokens; those without a kept token are dropped.
pub(crate) struct Rows {
    sequences: usize,
    slots: Column,
    /// Kept tokens of each sequence, at least 1, as `f32`.
    pub(crate) counts: Column,
}

impl Rows {
    pub(crate) fn new(recording: &mut Recording<'_>, batch: &GpuBatch<'_>) -> Result<Self, GpuError> {
        Self::counted(recording, batch, |kept| kept)
    }

    /// `count` turns the number of kept tokens into the divisor of a sequence's means.
    pub(crate) fn counted(
        recording: &mut Recording<'_>,
        batch: &GpuBatch<'_>,
        count: impl Fn(f64) -> f64,
    ) -> Result<Self, GpuError> {
        // checks that the numbers of the sequences fit into the words
        batch.slots(recording)?;
        let kept = kept_per_row(batch.host());
        let words: Vec<u32> =
            (0..).zip(&kept).map(|(sequence, &kept)| if kept == 0 { 0 } else { sequence << 2 | 3 }).collect();
        let counts: Vec<f32> = kept.iter().map(|&kept| count(kept.max(1) as f64) as f32).collect();
        Ok(Self { sequences: kept.len(), slots: recording.upload_words(&words)?, counts: recording.upload(&counts)? })
    }
}

impl Segmented for Rows {
    fn entries(&self) -> usize {
        self.sequences
    }

    fn segments(&self) -> usize {
        self.sequences
    }

    fn slots(&self, _: &mut Recording<'_>) -> Result<Column, GpuError> {
        Ok(self.slots.clone())
    }

    fn levels(&self, recording: &mut Recording<'_>) -> Result<Levels, GpuError> {
        Levels::new(recording, vec![1; self.sequences], None)
    }
}

/// All tokens of a batch as one sequence, for extremes over the batch.
pub(crate) struct All<'a, 'b>(pub(crate) &'a GpuBatch<'b>);

impl Segmented for All<'_, '_> {
    fn entries(&self) -> usize {
        self.0.entries()
    }

    fn segments(&self) -> usize {
        1
    }

    fn slots(&self, recording: &mut Recording<'_>) -> Result<Column, GpuError> {
        self.0.slots(recording)
    }

    fn levels(&self, recording: &mut Recording<'_>) -> Result<Levels, GpuError> {
        Levels::new(recording, vec![self.entries()], None)
    }
}

impl Recording<'_> {
    /// The log-ratio of each sequence, and the sum of them all.
    pub(crate) fn sequence_log_ratios(
        &mut self,
        batch: &GpuBatch<'_>,
        log_probs: &Input<'_>,
        old_log_probs: &Input<'_>,
    ) -> Result<(Column, Pending<f64>), GpuError> {
        let [new, old] = self.columns([log_probs, old_log_probs])?;
        let ([difference], record) = self.tokens(&DIFFERENCE, batch, &[Some(&new), Some(&old)], &[])?;
        let sum = Pending::new(move |done| {
            let [sum] = done.sums(record.header);
            sum
        });
        Ok((self.fold(Fold::Sum, batch, &difference)?, sum))
    }

    /// `e` to the mean log-ratio of each sequence; negative if the mean is beyond the cap.
    pub(crate) fn sequence_ratios(&mut self, rows: &Rows, sums: &Column, cap: f64) -> Result<Column, GpuError> {
        let ([ratios], _) = self.tokens(&RATIOS, rows, &[Some(sums), Some(&rows.counts)], &[bits(cap)])?;
        Ok(ratios)
    }

    /// `share · weight · sum / count` of each sequence.
    pub(crate) fn sequence_factors(
        &mut self,
        rows: &Rows,
        sums: &Column,
        weights: Option<&Column>,
        share: f64,
    ) -> Result<Column, GpuError> {
        let given = [Some(sums), Some(&rows.counts), weights];
        let ([factors], _) = self.tokens(&FACTORS, rows, &given, &[bits(share)])?;
        Ok(factors)
    }

    /// The factor of each sequence at its kept tokens, times a number of the token.
    pub(crate) fn spread(
        &mut self,
        batch: &GpuBatch<'_>,
        tokens: Option<&Column>,
        factors: &Column,
    ) -> Result<Column, GpuError> {
        let ([out], _) = self.tokens(&SPREAD, batch, &[tokens, Some(factors)], &[])?;
        Ok(out)
    }
}
